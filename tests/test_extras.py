"""Optional dependencies, the translation of messages for the command line, and options without effect."""

import re
import subprocess
import sys
from importlib import metadata

import numpy as np
import pandas as pd
import pytest

import belief
from belief._utils.optional import MissingExtraError, import_optional, install_command
from belief.cli.arguments import translate_message
from belief.data.columns import ColumnSelection
from belief.data.stream import open_files

# --- libraries ---


def test_import_optional_returns_the_module():
    assert import_optional("pyarrow.csv", "files") is sys.modules["pyarrow.csv"]


@pytest.mark.parametrize(
    ("name", "extra"), [("pyarrow.csv", "files"), ("matplotlib", "report"), ("pyspark.ml", "spark")]
)
def test_import_optional_names_a_missing_library_and_how_to_install_it(monkeypatch, name, extra):
    library = name.partition(".")[0]
    for module in {library, name, *(m for m in sys.modules if m.partition(".")[0] == library)}:
        monkeypatch.setitem(sys.modules, module, None)
    said = rf"needs? {library}, which is not installed: {re.escape(install_command(extra, library))}.$"
    with pytest.raises(MissingExtraError, match=said) as error:
        import_optional(name, extra)
    assert isinstance(error.value, ModuleNotFoundError)
    assert isinstance(error.value, ValueError)  # so the command line prints it in one line
    assert error.value.name == library


class Installed:
    """The metadata of an installed package.

    `tool` is the text of the file INSTALLER in the metadata: the name of the program that installed the package, such
    as pip. If it is None, there is no such file.
    """

    requires = ("numpy>=2.0.2", "pyarrow>=23.0.1; extra == 'files'", 'jinja2>=3.1; extra == "report"')

    def __init__(self, tool):
        self.tool = tool

    def read_text(self, name):
        return self.tool


@pytest.mark.parametrize(("tool", "command"), [("pip\n", "pip"), ("uv\n", "uv pip"), (None, "pip")])
def test_install_command_has_the_requirements_of_the_extra(monkeypatch, tool, command):
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(tool))
    assert install_command("files", "pyarrow") == f"{command} install 'pyarrow>=23.0.1'"
    assert install_command("report", "jinja2") == f"{command} install 'jinja2>=3.1'"


def test_install_command_of_a_source_tree(monkeypatch):
    def not_installed(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", not_installed)
    assert install_command("files", "pyarrow") == "pip install pyarrow"


def test_an_old_pyspark_is_named(monkeypatch):
    from belief.engines.spark.session import import_pyspark

    monkeypatch.setattr("pyspark.__version__", "3.4.1")
    with pytest.raises(ImportError, match=r"^belief needs Spark 3\.5 or newer, but PySpark 3\.4\.1 is installed\. Use"):
        import_pyspark("pyspark.sql")
    monkeypatch.setattr("pyspark.__version__", "3.5.0.dev1")
    assert import_pyspark("pyspark.sql").SparkSession


def test_import_optional_does_not_hide_other_import_errors(monkeypatch, tmp_path):
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
def test_public_functions_raise_missing_extra_error(tmp_path, library, extra, program):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n2,1\n")
    code = f"import sys; sys.modules[{library!r}] = None\nimport belief, belief.report.canvas\n"
    code += f"try: {program}\nexcept belief.MissingExtraError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert f"{library}, which is not installed: {install_command(extra, library)}." in done.stdout


# --- messages ---


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
def test_translate_message(said, shown):
    assert translate_message(said) == shown


# --- options without effect are refused ---


@pytest.fixture
def stream(tmp_path):
    pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20) % 2}).to_parquet(tmp_path / "a.parquet")
    return open_files([tmp_path / "a.parquet"], ColumnSelection("y"))


@pytest.mark.parametrize(
    "given", [{"y": np.arange(20) % 2}, {"label": "y"}, {"drop": "a"}, {"separator": ";"}, {"discrete_features": ["a"]}]
)
def test_select_refuses_options_that_an_open_stream_has(stream, given):
    with pytest.raises(ValueError, match=f"{next(iter(given))} cannot be changed for an open stream. Pass"):
        belief.select(stream, n_features_to_select=1, **given)
    assert belief.select(stream, n_features_to_select=1, n_neighbors=3, random_state=0).selected_names == ["a"]


@pytest.mark.parametrize("given", [{"n_jobs": 2}, {"working_memory": 99}, {"device": "cuda"}])
def test_select_refuses_local_options_on_spark(given):
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe", "sparkSession": None})()
    with pytest.raises(ValueError, match=f"{next(iter(given))} has no effect because X is a Spark DataFrame"):
        belief.select(frame, label="y", **given)


def test_open_files_refuses_names_for_npz(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(4), y=[0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"^candidates applies only to CSV, .* got \['a'\]\."):
        open_files([tmp_path / "a.npz"], ColumnSelection(candidates=["a"]))


def test_open_files_needs_a_label(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n2,1\n")
    with pytest.raises(ValueError, match="with label='name'"):
        belief.select(tmp_path / "a.csv")
