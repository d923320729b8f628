"""mRMR on Spark selects the same features as locally; the last test runs some of the others on Spark Connect."""

import os

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score
from spark_sessions import connect_server, on_connect

from belief.baselines import MRMR

pytest.importorskip("pyspark")
import mrmr_on_spark
from mrmr_on_spark import compute_cuts, mrmr_frame


def table(m=400, seed=0):
    """Return a table with redundant, missing and rounded values, a constant (5) and a nominal feature (6)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, m)
    X = rng.standard_normal((m, 8))
    X[:, 1] += y
    X[:, 2] = X[:, 1] + 0.1 * rng.standard_normal(m)
    X[:, 3] = np.round(X[:, 3] + 0.5 * y)
    X[rng.random(m) < 0.2, 4] = np.nan
    X[:, 5] = 7
    X[:, 6] = rng.integers(0, 4, m) * (y > 0)
    return X, y


def frame(spark, X, y, partitions=3):
    rows = [(row.tolist(), int(c)) for row, c in zip(X, y, strict=True)]
    return spark.createDataFrame(rows, "features array<double>, label int").repartitionByRange(partitions, "label")


@pytest.mark.parametrize(("form", "bins"), [("difference", 5), ("quotient", None)])
def test_mrmr_frame_selects_like_mrmr(spark, form, bins):
    X, y = table()
    X = X if bins else np.nan_to_num(np.round(X))
    local = MRMR(8, form=form, bins=bins, discrete_features=[6]).fit(X, y)
    found = mrmr_frame(
        frame(spark, X, y), features="features", label="label", n=8, form=form, bins=bins, discrete_features=[6]
    )
    assert found.selected.tolist() == local.selected_.tolist()
    assert found.scores == pytest.approx(local.selection_scores_, abs=1e-9)
    assert found.weights == pytest.approx(local.scores_, abs=1e-9)
    assert found.selected[-1] == 5  # the constant feature


def test_mrmr_frame_with_plain_columns_and_persisted_blocks(spark):
    X, y = table()
    town = np.array(["Rome", "Oslo", None, "Bern"])[X[:, 6].astype(int)]
    rows = [(*row[:4].tolist(), t, f"class {c}") for row, t, c in zip(X, town, y, strict=True)]
    df = spark.createDataFrame(rows, "a double, b double, c double, d double, town string, kind string")
    found = mrmr_frame(df, features=["a", "b", "c", "d", "town"], label="kind", n=3, staging="memory")
    local = MRMR(3, discrete_features=[4]).fit(X[:, [0, 1, 2, 3, 6]], y)
    assert found.selected.tolist() == local.selected_.tolist()
    assert found.selected_names == [["a", "b", "c", "d", "town"][j] for j in local.selected_]
    assert found.weights == pytest.approx(local.scores_, abs=1e-9)


def test_mrmr_frame_with_sparse_vectors(spark):
    from pyspark.ml.linalg import Vectors

    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 300)
    X = (rng.random((300, 30)) < 0.08) * rng.random((300, 30))
    X[:, 3] = (rng.random(300) < 0.1 + 0.4 * y) * 2.0
    X[:, 4] = X[:, 3] * (rng.random(300) < 0.9)
    X[:, 9] = 0
    rows = [
        (Vectors.sparse(30, np.flatnonzero(row).tolist(), row[row != 0].tolist()), int(c))
        for row, c in zip(X, y, strict=True)
    ]
    found = mrmr_frame(spark.createDataFrame(rows, ["v", "y"]), features="v", label="y", n=6)
    local = MRMR(6, bins=None).fit((X != 0).astype(float), y)
    assert found.selected.tolist() == local.selected_.tolist()
    assert found.weights == pytest.approx(local.scores_, abs=1e-9)


def test_mrmr_frame_with_cuts_from_a_sample(spark, monkeypatch):
    """With more rows than the sample, all rows are encoded with its quantiles."""
    monkeypatch.setattr(mrmr_on_spark, "CUT_ROWS", 100)
    at = []

    def record_cuts(x, bins):
        at.append((len(x), compute_cuts(x, bins)))
        return at[-1][1]

    monkeypatch.setattr(mrmr_on_spark, "compute_cuts", record_cuts)
    X, y = table()
    X = X[:, [0, 1, 2, 7]]
    found = mrmr_frame(frame(spark, X, y), features="features", label="label", n=4, bins=4)
    assert [rows for rows, _ in at] == [100] * 4
    codes = [np.searchsorted(upto, x) for x, (_, upto) in zip(X.T, at, strict=True)]  # a value at a cut is below it
    assert found.weights == pytest.approx([mutual_info_score(y, x) for x in codes], abs=1e-9)
    assert found.weights != pytest.approx(MRMR(4, bins=4).fit(X, y).scores_, abs=1e-6)


@pytest.mark.smoke
def test_compute_cuts():
    x = np.array([0.0, 1, 2, 3, 4, 5, np.nan])
    assert compute_cuts(x, 3).tolist() == [1, 3]
    assert compute_cuts(np.array([np.nan]), 3).tolist() == []
    assert compute_cuts(np.array([2.0, 1, 1]), 3).tolist() == [1]


def test_information_of_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    target, columns = rng.integers(0, 3, 50), [rng.permutation(np.arange(50) % levels) for levels in (2, 5, 4)]
    tables = [np.array([np.bincount(target[c == v], minlength=3) for v in range(c.max() + 1)]) for c in columns]
    found = mrmr_on_spark.information_of_tables(np.concatenate(tables), np.array([0, 2, 7]))
    assert found == pytest.approx([mutual_info_score(c, target) for c in columns], abs=1e-12)


def test_mrmr_frame_refuses_bad_input(spark, monkeypatch):
    X, y = table(60)
    df = frame(spark, X, y)
    with pytest.raises(ValueError, match="form must be 'difference' or 'quotient'; got 'ratio'"):
        mrmr_frame(df, features="features", label="label", form="ratio")
    with pytest.raises(ValueError, match=r"There is no column 'lable' \(did you mean 'label'\?\)"):
        mrmr_frame(df, features="features", label="lable")
    monkeypatch.setattr(mrmr_on_spark, "TABLE_BYTES", 10_000)
    with pytest.raises(
        ValueError, match="Feature 'x0' has 60 levels, too many for contingency tables with all other features"
    ):
        mrmr_frame(df, features="features", label="label", n=2, bins=None)


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="this is the child process")
def test_on_spark_connect():
    with connect_server() as address:
        on_connect(address, __file__, "-k", "quotient or sparse_vectors")
