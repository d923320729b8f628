"""Errors and warnings about the Python environment of the workers."""

import os
import re
import sys

import numpy as np
import pytest
from test_spark_engine import in_partitions, table

import belief
from belief.engines.spark import executors, workers

pytestmark = pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="the server sets the workers' Python")


@pytest.fixture
def bare_python(spark, tmp_path):
    """Run the workers with a Python that has only PySpark, as without PYSPARK_PYTHON."""
    python = tmp_path / "python"
    only_spark = 'PYTHONPATH=$(echo "$PYTHONPATH" | tr ":" "\\n" | grep -E "pyspark|py4j" | paste -sd:)'
    python.write_text(f'#!/bin/sh\n{only_spark} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    before, spark._sc.pythonExec = spark._sc.pythonExec, str(python)
    yield
    spark._sc.pythonExec = before


def frame(spark):
    X, y = table()
    return in_partitions(spark, X, y.astype(np.int32), 2).persist()


def test_fit_explains_missing_modules_on_workers(spark, request):
    df = frame(spark)
    df.count()  # with the complete Python
    request.getfixturevalue("bare_python")
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
