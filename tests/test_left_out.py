"""Dates and times become numbers; lists, structs and free text are left out with one warning."""

import datetime as dt
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pyarrow import parquet

import belief
from belief import BeliefSelector
from belief.cli import main

M = 120
rng = np.random.default_rng(5)
Y = rng.integers(0, 2, M)
START = dt.datetime(2021, 3, 4, 5, 6)
DAYS = rng.integers(0, 400, M) + 90 * Y
SECONDS = rng.integers(0, 80_000, M)
MOMENTS = [START + dt.timedelta(days=int(d), seconds=int(s)) for d, s in zip(DAYS, SECONDS, strict=True)]
WORDS = np.array([*"abcdefghijklmnopqrstuvwxyz"])
TEXT = [" ".join(rng.choice(WORDS, 6)) for _ in range(M)]
PLAIN = pl.DataFrame(
    {
        "day": [m.date() for m in MOMENTS],
        "moment": [None if i % 11 == 3 else m for i, m in enumerate(MOMENTS)],
        "noise": rng.standard_normal(M),
        "took": [dt.timedelta(seconds=int(s)) for s in SECONDS],
        "clock": [m.time() for m in MOMENTS],
        "y": Y,
    }
)
NUMBERS = pd.DataFrame(
    {
        "day": [float((m.date() - MOMENTS[0].date()).days) for m in MOMENTS],
        "moment": [np.nan if i % 11 == 3 else (m - MOMENTS[0]) / dt.timedelta(days=1) for i, m in enumerate(MOMENTS)],
        "noise": PLAIN["noise"].to_numpy(),
        "took": SECONDS.astype(float),
        "clock": [m.hour * 3600.0 + m.minute * 60 + m.second for m in MOMENTS],
        "y": Y,
    }
)
SETTINGS = {"label": "y", "n_features_to_select": 3, "random_state": 0, "significance": None}


def with_time_zone(frame):
    return frame.assign(moment=frame["moment"].dt.tz_localize("UTC").dt.tz_convert("Europe/Madrid"))


def saved(folder):
    parquet.write_table(PLAIN.to_arrow(), folder / "table.parquet")
    return folder / "table.parquet"


def saved_text(folder):
    PLAIN.drop("took", "clock").write_csv(folder / "table.csv")
    return folder / "table.csv"


DATED = {
    "polars": lambda folder: PLAIN,
    "pandas": lambda folder: PLAIN.to_pandas(),
    "pandas objects": lambda folder: pd.DataFrame(
        {name: PLAIN[name].to_list() for name in PLAIN.columns}, dtype=object
    ),
    "time zone": lambda folder: with_time_zone(PLAIN.to_pandas()),
    "arrow": lambda folder: PLAIN.to_arrow(),
    "blocks": lambda folder: [PLAIN[:7], PLAIN[7:]],
    "lazy": lambda folder: PLAIN.lazy(),
    "Parquet": saved,
    "CSV": saved_text,
}


@pytest.fixture(scope="module")
def expected():
    return belief.select(NUMBERS, **SETTINGS)


@pytest.mark.parametrize("kind", DATED)
def test_dates_and_times_are_numbers(kind, tmp_path, expected):
    if kind == "CSV":
        expected = belief.select(NUMBERS.drop(columns=["took", "clock"]), **SETTINGS)
    result = belief.select(DATED[kind](tmp_path), **SETTINGS)
    np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-12)
    assert result.selected_names == expected.selected_names
    found, known = ({d.feature: d.quantiles for d in r.distributions} for r in (result, expected))
    for feature, quantiles in known.items():  # the numbers themselves are equal, not only their order
        np.testing.assert_allclose(found[feature], quantiles, rtol=1e-12)


def test_array_of_dates():
    dates = np.array(MOMENTS, "M8[s]")[:, None]
    durations = (dates - dates[0]).astype("m8[s]")
    expected = belief.select(NUMBERS[["day"]].to_numpy() * 0 + durations.astype(float), Y, 1, random_state=0)
    for X in (dates, durations, [dates[:50], dates[50:]]):
        np.testing.assert_allclose(belief.select(X, Y, 1, random_state=0).weights, expected.weights, rtol=1e-12)


ODD = pl.DataFrame(
    {
        "tags": [["a", "b"][: i % 3] for i in range(M)],
        "noise": rng.standard_normal(M),
        "address": [{"street": "x", "number": i} for i in range(M)],
        "signal": rng.standard_normal(M) + 2 * Y,
        "raw": [b"%d" % i for i in range(M)],
        "comment": TEXT,
        "y": Y,
    }
)
LEFT_OUT = r"'tags' \(lists\), 'address' \(structs\), 'raw' \(bytes\), 'comment' \(free text\)\."
ODD_AS = {
    "polars": lambda folder: ODD,
    "pandas": lambda folder: pd.DataFrame({name: ODD[name].to_list() for name in ODD.columns}),
    "pandas with Arrow types": lambda folder: ODD.to_pandas(use_pyarrow_extension_array=True),
    "arrow": lambda folder: ODD.to_arrow(),
    "lazy": lambda folder: ODD.lazy(),
    "Parquet": lambda folder: (ODD.write_parquet(folder / "odd.parquet"), folder / "odd.parquet")[1],
    "Arrow file": lambda folder: (ODD.write_ipc(folder / "odd.arrow"), folder / "odd.arrow")[1],  # with binary_view
}


@pytest.mark.parametrize("kind", ODD_AS)
def test_one_warning_of_all_columns_left_out(kind, tmp_path):
    with pytest.warns(UserWarning, match=LEFT_OUT) as told:
        result = belief.select(ODD_AS[kind](tmp_path), **{**SETTINGS, "n_features_to_select": 1})
    assert len(told) == 1
    assert "TfidfVectorizer, or add its column to discrete_features" in str(told[0].message)
    assert result.feature_names == ["noise", "signal"]
    assert result.selected_names == ["signal"]


@pytest.mark.parametrize("kind", ["polars", "Parquet", "lazy"])
def test_free_text_can_be_kept_and_columns_dropped(kind, tmp_path):
    drop = ["tags", "address", "raw"]
    X = ODD_AS[kind](tmp_path)
    result = belief.select(X, **{**SETTINGS, "n_features_to_select": 1}, drop=drop, discrete_features=["comment"])
    assert result.feature_names == ["noise", "signal", "comment"]


def test_array_of_objects_with_free_text():
    X = np.column_stack([ODD["noise"].to_numpy().astype(object), TEXT, ODD["signal"].to_numpy()])
    with pytest.warns(UserWarning, match="1 column is left out: 'x1' .free text.. To use it"):
        result = belief.select(X, Y, 1, random_state=0)
    assert result.feature_names == ["x0", "x2"]
    assert result.selected_names == ["x2"]
    with pytest.warns(UserWarning, match="'x2' .free text."):
        result = belief.select(np.column_stack([Y, X]), label=0, n_features_to_select=1, random_state=0)
    assert result.feature_names == ["x1", "x3"]


def test_selector_gives_columns_left_out_the_last_rank():
    with pytest.warns(UserWarning, match="4 columns are left out"):
        selector = BeliefSelector(1, random_state=0).fit(ODD.drop("y"), Y)
    assert selector.get_support().tolist() == [False, False, False, True, False, False]
    assert selector.selected_.tolist() == [3]
    assert selector.ranking_.tolist()[3] == 1
    assert sorted(selector.ranking_) == [1, 2, 3, 4, 5, 6]
    assert np.isnan(selector.pvalues_[[0, 2, 4, 5]]).all()
    assert selector.scores_[[0, 2, 4, 5]].tolist() == [0] * 4
    assert selector.feature_importances_.sum() == pytest.approx(1)
    assert selector.set_output(transform="polars").transform(ODD.drop("y")).columns == ["signal"]


@pytest.mark.filterwarnings("always")
def test_command_line(tmp_path, capsys):
    ODD.write_parquet(tmp_path / "odd.parquet")
    out = str(tmp_path / "out.json")
    assert main(["select", str(tmp_path / "odd.parquet"), "--label", "y", "--top", "1", "--quiet", "--out", out]) == 0
    told = capsys.readouterr().err
    assert told.count("left out") == 1
    assert "'comment' (free text)" in told
    assert "add its column to --discrete" in told
    assert json.loads((tmp_path / "out.json").read_text())["feature_names"] == ["noise", "signal"]


def test_few_or_repeated_texts_are_categories():
    few = ["one two three four five", "six seven eight nine ten"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = pd.DataFrame(
            {"text": np.array(few)[np.where(np.arange(M) < 9, 1 - Y, Y)], "noise": rng.standard_normal(M)}
        )
        assert belief.select(frame, Y, 1, random_state=0).selected_names == ["text"]
