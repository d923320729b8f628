"""Tests on macOS and Windows, which other_system/sitecustomize.py simulates on Linux."""

import json
import os
import subprocess
import sys
from pathlib import Path, PureWindowsPath

import pytest

import belief
from belief._utils.system import allocate_file, total_memory
from belief.data.files import detect_format
from belief.datasets import CHURN
from belief.engines.spark.folder import Owner

HOME = Path(__file__).parent
CORE = {
    "macos": ("files", "sparse"),
    "windows": ("checkpoint", "cli", "damaged_files", "files", "result", "safe_files", "sparse", "tables"),
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="simulates another system"),
    pytest.mark.skipif("BELIEF_TEST_SYSTEM" in os.environ, reason="this is the simulated system"),
]


def run_on(system, *arguments, encoding="cp1252", **options):
    """Run Python on a simulated system, with the encoding of a terminal in Western Europe."""
    source = str(Path(belief.__file__).parents[1])
    path = os.pathsep.join([str(HOME / "other_system"), source, *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, "BELIEF_TEST_SYSTEM": system, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, env=env, timeout=500, **options)
    said = done.stdout.decode(encoding), done.stderr.decode(encoding)
    assert done.returncode == 0, "\n".join(said)
    return said[0].replace("\r\n", "\n")


@pytest.mark.parametrize("system", CORE)
def test_the_core_of_the_suite(system):
    tests = [HOME / f"test_{name}.py" for name in CORE[system]]
    marks = "not (slow or spark or gpu or browser)"
    printed = run_on(system, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks, *tests, encoding="utf-8")
    assert "passed" in printed


# --- processes ---

SPAWN = """
from concurrent.futures import ProcessPoolExecutor
import multiprocessing, numpy as np, belief
X = np.random.default_rng(0).normal(size=(1500, 4))
def select(j):
    return belief.select(X, X[:, j] > 0, 1, random_state=0).selected_names
if __name__ == "__main__":
    assert multiprocessing.get_start_method() == "spawn"
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(select, range(3))))
"""


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_spawned_processes(tmp_path, system):
    (tmp_path / "program.py").write_text(SPAWN)
    assert run_on(system, tmp_path / "program.py") == "[['x0'], ['x1'], ['x2']]\n"


def test_owner_of_a_staging_folder_on_windows(monkeypatch):
    """On Windows, it is not known whether the owner has ended, so its folder is kept for a day."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("os.kill ends a process on Windows, whatever the signal"))
    assert not Owner.current().has_ended()


# --- files ---

STAGE = """
import sys
from belief.engines.spark.blocks import BlockInfo
from belief.engines.spark.folder import Folder
folder, block = Folder(sys.argv[1]), BlockInfo(**{fields})
folder.write(block, bytearray(b"the rows of a block"))
for whole in (True, False):
    mapped = folder.read(block, whole)
    folder.write(block, bytearray(b"the rows of a block"))  # a second attempt of the same task
    assert mapped[:] == b"the rows of a block"
print(len(list(folder.path().iterdir())))
"""


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_blocks_are_staged_again_while_they_are_read(tmp_path, system):
    fields = {"partition": 0, "seq": 1, "rows": 2, "checksum": 3}
    assert run_on(system, "-c", STAGE.format(fields=fields), tmp_path / "staged") == "1\n"


def test_output_that_another_program_has_open(tmp_path):
    program = """
import sys
from pathlib import Path
from belief.cli.outputs import write_text
path = Path(sys.argv[1])
with path.open("rb"):
    try:
        write_text("new", path)
    except ValueError as error:
        print(error)
"""
    (path := tmp_path / "r.html").write_text("old")
    printed = run_on("windows", "-c", program, path)
    assert printed == f"{path}: cannot be written (Permission denied). Close the program that has it open.\n"
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("r.html", "old")]


def test_paths_with_drive_letters(tmp_path):
    """The format of such a path is detected, and the command line reads and writes files with such names."""
    assert detect_format(PureWindowsPath(r"C:\Daten\v1.2\kunden.CSV.gz")) == "csv"
    name = r"C:\Daten\kunden.csv"
    (tmp_path / name).write_bytes(CHURN.read_bytes())
    options = ("--label", "left", "--top", "2", "--seed", "0", "--quiet", "--out", r"D:\r.json")
    run_on("windows", "-m", "belief.cli", "select", name, *options, cwd=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [name, r"D:\r.json"]
    found = json.loads((tmp_path / r"D:\r.json").read_text())
    assert belief.Result.from_dict(found).selected_names == ["support_calls", "contract"]


def test_file_for_rows_on_a_small_disk(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")
    with (tmp_path / "rows").open("w+b") as file:
        allocate_file(file, 2**20, str(tmp_path))
        assert file.seek(0, os.SEEK_END) == 2**20
        with pytest.raises(OSError, match="No space left on device"):
            allocate_file(file, 2**60, str(tmp_path))


def test_total_memory():
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert total_memory() == pages
    told = run_on("windows", "-c", "from belief._utils.system import total_memory; print(total_memory())")
    assert int(told) == pages


# --- text ---


def test_terminal_without_unicode(tmp_path):
    """Characters of names that cp1252 lacks are replaced; the texts of the package need no other encoding."""
    text = CHURN.read_text().replace("support_calls", "größe_€").replace("contract", "ψ")
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    options = ("--label", "left", "--top", "2", "--seed", "0", "--quiet")
    printed = run_on("windows", "-m", "belief.cli", "select", tmp_path / "a.csv", *options)
    assert "größe_€" in printed
    assert "1.000 ± 0.098" in printed
    assert "ψ" not in printed
    for command in (["--help"], ["select", "--help"], ["compare", "--help"], ["demo"]):
        shown = [run_on("windows", "-m", "belief.cli", *command, encoding=name) for name in ("cp1252", "utf-8")]
        assert shown[0] == shown[1], command
    program = "import belief, numpy as np; X = np.eye(60)[:, :5]; X[:, 0] = np.arange(60)\n"
    program += "result = belief.select(X, X[:, 0] > 30, 2, random_state=0); print(result, result.explain())"
    assert "selected: the most relevant feature" in run_on("windows", "-W", "ignore", "-c", program)
