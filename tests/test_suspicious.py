"""Identifiers, codes for missing values and copies of the target cause one warning, which the report repeats."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from conftest import select_in_blocks
from scipy import sparse

import belief
from belief.data import ColumnSelection, open_files
from belief.engines import suspicious

M = 400
rng = np.random.default_rng(7)
Y = rng.integers(0, 2, M)
PLAIN = pd.DataFrame(
    {
        "signal": rng.standard_normal(M) + Y,
        "age": rng.integers(18, 90, M),
        "income": rng.integers(10_000, 90_000, M),
        "group": rng.choice(["a", "b", "c"], M),
        "visits": rng.poisson(2, M),
        "change": rng.integers(-20, 20, M),
        "y": Y,
    }
)
ODD = PLAIN.assign(
    row=np.arange(M) + 1000,
    shuffled=rng.permutation(M),
    user_id=rng.choice(10**9, M, replace=False),
    code=[f"k{i}" for i in range(M)],
    dose=np.where(rng.random(M) < 0.1, -9, rng.integers(0, 5, M)),
    weight=np.where(rng.random(M) < 0.1, -999, rng.normal(70, 9, M)),
    outcome=np.where(Y, "ill", "well"),
    score=Y + rng.uniform(0, 0.9, M),
)
SETTINGS = {"label": "y", "n_features_to_select": 3, "random_state": 0}


def as_file(frame, folder, ending):
    path = folder / f"table.{ending}"
    frame.to_parquet(path, index=False) if ending == "parquet" else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("form", ["frame", "parquet", "csv"])
def test_one_warning_names_all(form, tmp_path):
    X = ODD if form == "frame" else as_file(ODD, tmp_path, form)
    with pytest.warns(UserWarning, match="identifier") as told:
        result = belief.select(X, **SETTINGS)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert result.notes == [
        "Columns 'row', 'shuffled', 'user_id', 'code' look like an identifier, with a different value in nearly every"
        " row.",
        "Column 'dose' contains -9 and no other negative value, like a code for missing values.",
        "Column 'weight' contains -999 and no other negative value, like a code for missing values.",
        "Columns 'outcome', 'score' determine the target, like a copy of it.",
        "Leave columns out with drop=['row', 'shuffled', 'user_id', 'code', 'outcome', 'score'], and replace such codes"
        " by NaN.",
    ]  # fmt: skip
    assert str(told[0].message) == " ".join(result.notes)
    assert belief.Result.from_dict(result.to_dict()).notes == result.notes
    if form == "frame":
        assert "like a code for missing values" in belief.report.render(result)
    if form == "parquet":
        stream = open_files([X], ColumnSelection("y"))
        stream.files.max_batch_rows = 90
        settings = {name: value for name, value in SETTINGS.items() if name != "label"}
        assert select_in_blocks(stream, **settings).notes == result.notes


def test_ordinary_columns_are_not_named():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert belief.select(PLAIN, **SETTINGS).notes == []
        plain = PLAIN.assign(number=PLAIN["age"] * 1.0)
        assert belief.select(plain, **{**SETTINGS, "label": "income"}, task="regression").notes == []


def test_columns_can_be_dropped_or_declared():
    drop = ["row", "shuffled", "user_id", "outcome", "score", "dose", "weight"]
    assert belief.select(ODD, **SETTINGS, drop=drop, discrete_features=["code"]).notes == []


def test_array_gets_positions():
    X = np.column_stack([rng.standard_normal((M, 2)), Y])
    with pytest.warns(UserWarning, match=r"Column 'x2' determines the target.* with drop=\[2\]\."):
        belief.select(X, Y, 1, random_state=0)


@pytest.mark.parametrize("copy", ["the same", "logarithm", "reversed"])
def test_copy_of_a_numeric_target(copy):
    y = rng.lognormal(size=M)
    x = {"the same": y, "logarithm": np.log(y), "reversed": -y}[copy]
    X = pd.DataFrame({"noise": rng.standard_normal(M), "copy": x, "near": y + rng.normal(0, 0.3, M)})
    with pytest.warns(UserWarning, match="Column 'copy' determines the target"):
        belief.select(X, y, 1, random_state=0)


def test_small_tables_show_only_named_identifiers_and_codes():
    """With few rows, all values may be different, or a feature may determine the target, by chance."""
    with pytest.warns(UserWarning, match="identifier"):
        notes = belief.select(ODD[:40], **SETTINGS, n_neighbors=5).notes
    assert notes[0].startswith("Column 'user_id' looks like an identifier")
    assert "'dose' contains -9" in notes[1]
    assert "'weight' contains -999" in notes[2]
    assert "determine" not in " ".join(notes)


@pytest.mark.parametrize("n", [40, M])
def test_sparse_matrices_have_the_notes_of_arrays(n):
    X = ODD[["signal", "visits", "user_id", "dose", "weight", "score"]].to_numpy()[:n]
    options = {"feature_names": ["signal", "visits", "user_id", "dose", "weight", "score"], "n_features_to_select": 2}
    found = []
    for table in (X, sparse.csr_array(X)):
        with pytest.warns(UserWarning, match="user_id.* like an identifier"):
            found.append(belief.select(table, Y[:n], random_state=0, n_neighbors=5, **options).notes)
    assert found[0] == found[1]


@pytest.mark.slow
def test_wide_sparse_matrices_are_not_looked_at():
    X = sparse.csr_array((np.arange(M), (np.arange(M), np.zeros(M, int))), shape=(M, suspicious.MAX_WIDTH + 1))
    assert belief.select(X, Y, 1, random_state=0, significance=None).notes == []


def test_rows_are_spread_over_the_table():
    sample, X = suspicious.RowSample(), np.arange(30_000.0)[:, None]
    for a in range(0, len(X), 700):
        sample.add(X[a : a + 700], a)
    rows = np.concatenate(sample.ids)
    assert 2000 < len(rows) <= suspicious.MAX_ROWS
    assert np.all(np.diff(rows) == sample.step)
    assert np.array_equal(np.concatenate(sample.parts)[:, 0], rows)
    assert suspicious.spread_rows(30_000, 1)[[0, -1]].tolist() == [0, 29_999]


def test_columns_that_determine_the_class():
    """The result is the same as by the definition, which is checked value by value."""
    rng = np.random.default_rng(5)
    n_found = 0
    for _ in range(40):
        n, n_classes = int(rng.integers(60, 400)), int(rng.integers(2, 5))
        classes = rng.integers(0, n_classes, n)
        X = np.stack([
            rng.normal(size=n), classes + 0.5 * rng.random(n), classes + 1.5 * rng.random(n), rng.integers(0, 9, n),
            n_classes * rng.integers(0, 3, n) + classes, np.where(rng.random(n) < 0.1, np.nan, classes), np.zeros(n),
        ], axis=1)  # fmt: skip
        want = []
        for x in X.T:
            values = {v: set(classes[x == v]) for v in x}
            bounds = sorted((x[classes == c].min(), x[classes == c].max()) for c in np.unique(classes))
            separate = all(a[1] < b[0] for a, b in pairwise(bounds))
            is_pure = all(len(each) == 1 for each in values.values()) and not np.isnan(x).any()
            want.append(is_pure and (len(values) <= 0.1 * n or (separate and n >= 200)))
        assert suspicious._determine_class(X, classes).tolist() == want
        n_found += sum(want)
    assert n_found > 40
