"""Libraries that may be missing, and words that belong to one face only."""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import belief
from belief._utils import optional as extras
from belief._utils.optional import MissingExtraError, import_optional, installs
from belief.cli.arguments import translate_message
from belief.data.columns import ColumnSelection
from belief.data.stream import open_files

# --- libraries ---


def test_a_library_that_is_there_is_imported():
    assert import_optional("pyarrow.csv", "files") is sys.modules["pyarrow.csv"]


@pytest.mark.parametrize(
    ("name", "extra"), [("pyarrow.csv", "files"), ("matplotlib", "report"), ("pyspark.ml", "spark")]
)
def test_a_library_that_is_missing_is_named_with_the_line_that_installs_it(monkeypatch, name, extra):
    library = name.partition(".")[0]
    for module in {library, name, *(m for m in sys.modules if m.partition(".")[0] == library)}:
        monkeypatch.setitem(sys.modules, module, None)
    said = rf"needs? {library}, which is not installed: {re.escape(installs(extra, library))}.$"
    with pytest.raises(MissingExtraError, match=said) as error:
        import_optional(name, extra)
    assert isinstance(error.value, ModuleNotFoundError)
    assert isinstance(error.value, ValueError)  # one line on the command line
    assert error.value.name == library


class Installed:
    """A distribution as it was installed."""

    requires = ("numpy>=2.0", "pyarrow>=16; extra == 'files'", 'jinja2>=3.1; extra == "report"')

    def __init__(self, origin=None, tool="pip"):
        self.texts = {"INSTALLER": f"{tool}\n", "direct_url.json": origin and json.dumps(origin)}

    def read_text(self, name):
        return self.texts[name]


FOLDER = str(Path(__file__).parent)
INSTALLED = [
    (Installed(), "pip install 'belief-fs[files]'"),
    (Installed(tool="uv"), "uv pip install 'belief-fs[files]'"),
    (Installed(tool="conda"), "pip install 'pyarrow>=16'"),
    (Installed({"url": f"file://{FOLDER}", "dir_info": {}}), f"pip install '{FOLDER}[files]'"),
    (Installed({"url": f"file://{FOLDER}", "dir_info": {"editable": True}}), f"pip install -e '{FOLDER}[files]'"),
    (Installed({"url": "file:///gone/since", "dir_info": {}}), "pip install 'pyarrow>=16'"),
    (Installed({"url": "https://host/b.whl", "archive_info": {}}), "pip install 'belief-fs[files] @ https://host/b.whl'"),
    (Installed({"url": "https://host/b", "vcs_info": {"vcs": "git", "commit_id": "1"}}),
     "pip install 'belief-fs[files] @ git+https://host/b'"),
]  # fmt: skip


@pytest.mark.parametrize(("installed", "line"), INSTALLED, ids=[line for _, line in INSTALLED])
def test_the_line_is_true_for_how_the_package_was_installed(monkeypatch, installed, line):
    monkeypatch.setattr(metadata, "distribution", lambda name: installed)
    assert installs("files", "pyarrow") == line


def test_the_line_for_a_package_that_was_not_installed(monkeypatch, tmp_path):
    def none(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", none)
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "src" / "belief" / "_utils" / "optional.py"))
    assert installs("files", "pyarrow") == "pip install pyarrow"
    (tmp_path / "pyproject.toml").write_text("")
    assert installs("files", "pyarrow") == f"pip install '{tmp_path}[files]'"


def test_what_a_library_lacks_itself_is_not_hidden(monkeypatch, tmp_path):
    (tmp_path / "lacking.py").write_text("import nothing_of_that_name")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="nothing_of_that_name") as error:
        import_optional("lacking", "files")
    assert not isinstance(error.value, MissingExtraError)


@pytest.mark.parametrize(
    ("library", "extra", "program"),
    [
        ("pyspark", "spark", "belief.spark.BeliefSelector"),
        ("pyarrow", "files", "belief.select('a.csv', label='y')"),
        ("matplotlib", "report", "belief.report.canvas.matplotlib()"),
    ],
)
def test_every_face_says_so(tmp_path, library, extra, program):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n2,1\n")
    code = f"import sys; sys.modules[{library!r}] = None\nimport belief, belief.report.canvas\n"
    code += f"try: {program}\nexcept belief.MissingExtraError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert f"{library}, which is not installed: {installs(extra, library)}." in done.stdout


# --- words ---


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Say which column, with label='name'.", "Say which column, with --label name."),
        ("take it as names with discrete_features=['b c'].", "take it as names with --discrete 'b c'."),
        ("n_jobs must be an integer; got 0.", "--n-jobs must be an integer; got 0."),
        ("kappa must be a number; got 3.", "--kappa must be a number; got 3."),
        ("device='cuda' needs a GPU; device must be", "--device cuda needs a GPU; device must be"),
        ("n_features_to_select=9 with eta=2.0: lower eta, or set redundancy=None.",
         "--top 9 with --eta 2.0: lower eta, or set --redundancy None."),
        ("with sampling='proportional' at least one row", "with --sampling proportional at least one row"),
        ("drop: there is no column 'x'", "--drop: there is no column 'x'"),
        ("there is no column 'n_jobs': drop it.", "there is no column 'n_jobs': drop it."),
        ("--kappa must be a number", "--kappa must be a number"),
    ],
)  # fmt: skip
def test_the_command_line_calls_parameters_by_its_options(said, shown):
    assert translate_message(said) == shown


# --- what would be ignored is refused ---


@pytest.fixture
def stream(tmp_path):
    pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20) % 2}).to_parquet(tmp_path / "a.parquet")
    return open_files([tmp_path / "a.parquet"], ColumnSelection("y"))


@pytest.mark.parametrize("given", [{"y": np.arange(20) % 2}, {"label": "y"}, {"discrete_features": ["a"]}])
def test_what_an_opened_stream_knows_is_refused_beside_it(stream, given):
    with pytest.raises(ValueError, match=f"{next(iter(given))} cannot be changed for an open stream. Omit it"):
        belief.select(stream, n_features_to_select=1, **given)
    assert belief.select(stream, n_features_to_select=1, n_neighbors=3, random_state=0).selected_names == ["a"]


@pytest.mark.parametrize("given", [{"n_jobs": 2}, {"working_memory": 99}, {"device": "cuda"}])
def test_select_refuses_local_options_on_spark(given):
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe", "sparkSession": None})()
    with pytest.raises(ValueError, match=f"{next(iter(given))} has no effect because X is a Spark DataFrame"):
        belief.select(frame, label="y", **given)


def test_files_without_names_have_none_to_drop(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(4), y=[0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"^keep applies only to CSV, .* got \['a'\]\."):
        open_files([tmp_path / "a.npz"], ColumnSelection(keep=["a"]))


def test_the_column_of_the_class_is_asked_for_in_python_words(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n2,1\n")
    with pytest.raises(ValueError, match="with label='name'"):
        belief.select(tmp_path / "a.csv")
