"""Tests of a release: versions and lower bounds agree, and the wheel and the sdist contain the right files."""

import re
import sys
import zipfile
from pathlib import Path

import pytest

import belief

HOME = Path(__file__).parents[1]
sys.path.insert(0, str(HOME / "release"))
import check  # noqa: E402

WORKFLOWS = HOME / ".github" / "workflows"
PROJECT = check.project()
EXTRAS = PROJECT["optional-dependencies"]


def bounds(requirements):
    """Return the lower bound of each library, by its name in lower case."""
    found = [re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\d.]+)", each) for each in requirements]
    return {each[1].lower(): each[2] for each in found if each}


def same(a, b):
    """Return True if two versions are the same; 2.0 and 2.0.0 are the same."""
    pad = [[int(x) for x in v.split(".")] + [0, 0] for v in (a, b)]
    return pad[0][:3] == pad[1][:3]


def test_the_version_stands_in_one_place():
    assert PROJECT["dynamic"] == ["version"]
    assert check.version() == belief.__version__
    assert check.wrong_versions() == []


def test_a_tag_must_be_that_of_the_version():
    wrong = check.wrong_versions("v99.0.0")
    assert any("'v99.0.0'" in line and f"'v{belief.__version__}'" in line for line in wrong)


# --- lower bounds ---


def test_the_oldest_versions_are_the_lower_bounds():
    pinned = dict(
        re.findall(
            r"^([\w.-]+)==([\d.]+)$", (HOME / "constraints-oldest.txt").read_text().partition("# what those")[0], re.M
        )
    )
    pinned = {name.lower(): version for name, version in pinned.items()}
    asked = [
        *PROJECT["dependencies"],
        *(r for name in ("anndata", "files", "gpu", "report", "spark", "test") for r in EXTRAS[name]),
    ]
    wanted = bounds(asked)
    assert set(pinned) == set(wanted)
    assert {name: v for name, v in wanted.items() if not same(v, pinned[name])} == {}


def test_every_requirement_has_a_lower_bound():
    for requirement in [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]:
        assert ">=" in requirement or requirement.startswith("belief-fs["), requirement


def test_all_that_the_extras_bring_is_pinned():
    pinned = {
        name.lower().replace("_", "-")
        for name in re.findall(r"^([\w.-]+)==", (HOME / "constraints.txt").read_text(), re.M)
    }
    for requirement in [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]:
        name = re.match(r"[\w.-]+", requirement)[0]
        assert name == "belief-fs" or name.lower().replace("_", "-") in pinned, name


def test_the_lock_has_hashes_and_the_pinned_versions():
    """The lock contains all that the command line and its reports need, and no URL of a package index."""
    lock = (HOME / "release" / "requirements.txt").read_text()
    versions = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.M))
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", (HOME / "constraints.txt").read_text().lower(), re.M))
    assert {name: version for name, version in versions.items() if pinned[name] != version} == {}
    for requirement in [*PROJECT["dependencies"], *EXTRAS["files"], *EXTRAS["report"]]:
        assert re.match(r"[\w.-]+", requirement)[0] in versions
    blocks = re.split(r"\n(?=\S)", lock.strip())
    assert len(blocks) == len(versions)
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in lock


# --- the recipe ---


def recipe():
    """Return the parsed recipe; it is YAML once the lines in braces are removed and the variables are replaced."""
    yaml = pytest.importorskip("yaml", reason="comes with the extra test")
    text = re.sub(r"\{%.*%\}\n", "", (HOME / "recipe" / "meta.yaml").read_text())
    text = text.replace("{{ name }}", PROJECT["name"]).replace("{{ version }}", check.version())
    return yaml.safe_load(text.replace("{{ PYTHON }}", "python"))


def test_the_recipe_says_what_pyproject_says():
    said = recipe()
    assert said["package"] == {"name": PROJECT["name"], "version": check.version()}
    run = dict(line.split(" >=") for line in said["requirements"]["run"])
    assert run.pop("python") == PROJECT["requires-python"].removeprefix(">=")
    assert run == bounds(PROJECT["dependencies"])
    wanted = {line.partition(" ")[0] for line in said["requirements"]["run_constrained"]}
    assert wanted == {"pyarrow", "jinja2", "matplotlib-base", "pyspark", "pytorch"}
    assert said["build"]["entry_points"] == [f"belief = {PROJECT['scripts']['belief']}"]
    assert said["about"]["license"] == PROJECT["license"]
    assert said["about"]["summary"] == PROJECT["description"]
    assert (HOME / said["about"]["license_file"]).exists()
    assert said["test"]["imports"] == ["belief"]


# --- the workflows ---


@pytest.mark.skipif(not WORKFLOWS.is_dir(), reason="an sdist has no workflows")
def test_workflows_name_existing_targets_and_files():
    yaml = pytest.importorskip("yaml", reason="comes with the extra test")
    read = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(WORKFLOWS.glob("*.yml"))}
    assert set(read) == {"tests", "nightly", "docs", "benchmarks", "release", "security"}
    matrix = read["tests"]["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert {*matrix["dependencies"], *(each["dependencies"] for each in matrix["include"])} == {
        "pinned",
        "newest",
        "oldest",
    }
    targets = re.findall(r"^([\w-]+):", (HOME / "Makefile").read_text(), re.M)
    for name, workflow in read.items():
        commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
        for command in commands:
            assert all(target in targets for target in re.findall(r"\bmake ([\w-]+)", command)), name
            assert all((HOME / path).exists() for path in re.findall(r"\b[\w/-]+\.(?:py|txt)\b", command)), name
    publish = read["release"]["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}  # trusted publishing needs no password
    assert publish["needs"] == "build"


@pytest.mark.skipif(not WORKFLOWS.is_dir(), reason="an sdist has no workflows")
def test_workflows_use_fixed_code_and_give_scripts_no_text_of_others():
    yaml = pytest.importorskip("yaml", reason="comes with the extra test")
    for path in sorted(WORKFLOWS.glob("*.yml")):
        text = path.read_text()
        for line in re.findall(r"^.*\buses: .*$", text, re.M):
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), f"{path.name}: {line.strip()}"
        workflow = yaml.safe_load(text)
        assert workflow["permissions"] == {"contents": "read"}, path.name
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                assert "${{" not in step.get("run", ""), path.name
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False, path.name


# --- wheel and sdist ---


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("hatchling", reason="comes with the extra test")
    if not (HOME / ".git").exists():
        pytest.skip("without git there is no list of what belongs to the project")
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    folder = str(tmp_path_factory.mktemp("dist"))
    return [
        Path(next(kind(str(HOME)).build(directory=folder, versions=["standard"])))
        for kind in (WheelBuilder, SdistBuilder)
    ]


def test_wheel_and_sdist_hold_what_they_must(built):
    wheel, sdist = built
    assert check.wrong_in_wheel(wheel) == []
    assert check.wrong_in_sdist(sdist) == []
    assert wheel.name == f"belief_fs-{belief.__version__}-py3-none-any.whl"


def test_what_is_missing_is_named(built, tmp_path):
    wheel, _ = built
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(tmp_path / "part.whl", "w", 8) as part:
        for name in whole.namelist():
            if not name.endswith("page.css"):
                part.writestr(name, whole.read(name))
        part.writestr("belief/secret.txt", "")
    assert check.wrong_in_wheel(tmp_path / "part.whl") == [
        "the wheel lacks belief/report/templates/page.css",
        "the wheel should not have belief/secret.txt",
    ]
