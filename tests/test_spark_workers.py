"""Tests of errors and warnings about the Python environment of Spark workers."""

import os
import re
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from packaging.requirements import Requirement
from test_spark_engine import in_partitions, table

import belief
from belief.engines.spark import executors, workers

pytestmark = pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the server sets the workers' Python")


@pytest.fixture
def set_packages(spark, tmp_path):
    """Yield a function that gives the workers a Python with only PySpark and the packages of some folders."""
    before = spark._sc.pythonExec

    def set_packages(*folders):
        python, of_spark = (
            tmp_path / "python",
            '$(echo "$PYTHONPATH" | tr ":" "\\n" | grep -E "pyspark|py4j" | paste -sd:)',
        )
        path = ":".join([*map(str, folders), of_spark])
        python.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} -S "$@"\n')
        python.chmod(0o755)
        spark._sc.pythonExec = str(python)

    yield set_packages
    spark._sc.pythonExec = before


def installed_with(name, extra="", found=None):
    """Return the names of all direct and indirect dependencies of a distribution that pip installs with it."""
    found = set() if found is None else found
    for text in metadata.requires(name) or []:
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name not in found:
            found.add(requirement.name)
            for each in ["", *requirement.extras]:
                installed_with(requirement.name, each, found)
    return found


def link_packages(names, folder):
    """Create a folder with links to the files of these distributions."""
    folder.mkdir()
    for path in (path for name in names for path in metadata.files(name)):
        top = path.parts[0]
        if top != ".." and not (folder / top).exists():
            (folder / top).symlink_to(path.locate().parents[len(path.parts) - 2] if path.parts[1:] else path.locate())


def frame(spark):
    X, y = table()
    return in_partitions(spark, X, y.astype(np.int32), 2).persist()


def test_fit_explains_missing_modules_on_workers(spark, set_packages):
    df = frame(spark)
    df.count()  # computes the rows with the complete Python
    set_packages()
    with pytest.raises(RuntimeError) as error:
        belief.select(df, label="label", n_features_to_select=2)
    message = str(error.value)
    assert re.match(
        rf"The workers' Python, {re.escape(sys.executable)}, has no module '(belief|numpy)'. Set P", message
    )
    assert "spark.archives" in message
    assert "install belief-fs[spark]" in message
    assert "\n" not in message
    df.unpersist()


def test_fit_needs_no_more_on_workers_than_the_extra_files(spark, set_packages, tmp_path):
    names = installed_with("belief-fs", "files")
    assert {"numba", "pyarrow"} <= names
    assert not {"pyspark", "pandas", "matplotlib"} & names
    link_packages(names, tmp_path / "packages")
    set_packages(tmp_path / "packages", Path(belief.__file__).parents[1])
    found = belief.select(frame(spark), label="label", n_features_to_select=2, random_state=0)
    assert_array_equal(found.selected, belief.select(*table(), 2, random_state=0).selected)


def test_explain_error_ignores_modules_of_the_user(spark):
    text = "ModuleNotFoundError: No module named 'tensorflow'"
    assert workers.explain_error(spark, text) is None


def test_explain_error_names_another_version(spark, monkeypatch):
    monkeypatch.setattr(workers, "_ask_worker", lambda spark: {"executable": "/opt/python", "belief-fs": "0.0.1"})
    message = workers.explain_error(spark, "ModuleNotFoundError: No module named 'belief.engines.spark.parquet'\n")
    assert message.startswith("The workers' Python, /opt/python, has belief-fs 0.0.1 without belief.engines.spark")


def test_fit_compares_the_versions_of_workers(spark, monkeypatch):
    found = []
    monkeypatch.setattr(executors, "warn_of_differences", found.extend)
    belief.select(frame(spark), label="label", n_features_to_select=2)
    assert found
    assert all(versions == workers.get_versions() for versions in found)


def test_warn_of_differences():
    worker = {**workers.get_versions(), "numpy": "1.0.0", "belief-fs": "9.9"}
    with pytest.warns(UserWarning, match=r"belief-fs 9\.9 \(driver: .*\), numpy 1\.0\.0 \(driver: .*\)\."):
        workers.warn_of_differences([workers.get_versions(), worker])
