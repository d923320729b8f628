"""Tests of numeric targets: the oracle on every engine, invariances, invalid targets, and the interfaces."""

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial

import naive
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from conftest import ENGINES, streamed
from effort import NOT_REPETITION, examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.utils.estimator_checks import parametrize_with_checks
from tables import cases
from test_oracle import CLOSE, is_close_call, run

import belief
from belief import BeliefSelector
from belief.cli.commands import main
from belief.engines.block import table_engine
from belief.engines.resources import Resources
from belief.method import ranks
from belief.method.ranks import Ranks, from_pattern, to_pattern
from belief.method.targets import make_numeric_target

# --- ranks ---

pytestmark = pytest.mark.slow


def mid_ranks(y):
    """Return the mid-ranks as section 10 of docs/method.md defines them."""
    return naive.mid_ranks(np.asarray(y, float))


@given(y=st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3).map(float), min_size=2))
def test_ranks_t_and_to_pattern(y):
    y = np.array(y)
    np.testing.assert_allclose(Ranks.from_blocks(lambda: [y]).t(y), mid_ranks(y), rtol=1e-12)
    np.testing.assert_array_equal(np.sort(y), from_pattern(np.sort(to_pattern(y))))


def clumped(rng, n):
    """Return a target with a wide range and many nearly equal values, for which cells of one size are too coarse."""
    wide = np.exp(rng.uniform(-300, 300, 4 * n)) * rng.choice([-1, 1], 4 * n)
    return rng.permutation(np.concatenate([wide, 1 + 1e-9 * rng.random(6 * n), np.full(n, 1 + 3e-10)]))


@pytest.mark.parametrize("n", [5_000, pytest.param(250_000, marks=pytest.mark.slow)])
def test_ranks_from_blocks_for_any_partitioning(n):
    rng = np.random.default_rng(0)
    y = clumped(rng, n)
    order = np.sort(y)
    exact = (np.searchsorted(order, y) + np.searchsorted(order, y, "right") - 1) / 2 / (len(y) - 1)
    found = Ranks.from_blocks(lambda: [y])
    error = np.abs(found.t(y) - exact).max()
    assert error <= ranks.MAX_ERROR
    assert (error < 1e-12) == (n == 5_000)
    for n_parts in (2, 30):
        parts = np.array_split(rng.permutation(y), n_parts)
        other = Ranks.from_blocks(lambda parts=parts: parts)
        np.testing.assert_array_equal(other.start, found.start)
        np.testing.assert_array_equal(other.count, found.count)


# --- the oracle ---


@pytest.fixture(params=[*ENGINES, "streamed"])
def make_engine(request):
    if request.param == "streamed":
        return partial(streamed, task="regression", small_rows=0)
    source, options = ENGINES[request.param]

    def make(X, y, discrete):
        return table_engine(source(X), *make_numeric_target(y), discrete, Resources(**options))

    return make


@st.composite
def numeric_cases(draw):
    """Draw a table as for classes, and a target: noise, a feature with noise, few values, or a very wide range."""
    case = draw(cases())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["noise", "feature", "few", "wild"]))
    y = rng.standard_normal(len(case.X))
    if kind == "feature":
        y = y * 0.3 + np.nan_to_num(case.X[:, 0])
    y = np.round(y) if kind == "few" else np.exp(20 * y) if kind == "wild" else y
    assume(np.ptp(y) > 0)
    return case, y


def agree(got, ref):
    size = max(np.abs(ref.w).max(initial=0), 1e-300)
    np.testing.assert_allclose(got.weights, ref.w, rtol=1e-9, atol=1e-11 * max(size, 1e-3))
    np.testing.assert_allclose(got.tally.DD, ref.DD, **CLOSE)
    np.testing.assert_allclose(got.tally.ED, ref.ED, **CLOSE)
    np.testing.assert_allclose(np.broadcast_to(got.tally.DC, ref.DC.shape), ref.DC, **CLOSE)
    np.testing.assert_allclose(np.broadcast_to(got.tally.EC, ref.EC.shape), ref.EC, **CLOSE)
    assert got.tally.n_pairs == ref.n_pairs
    # the squared error is the sum of six terms that nearly cancel, so the rounding error of its root is larger
    differ = naive.ratio(ref.DD + ref.ED, ref.DC + ref.EC)  # the mean Δ; w is a difference of such means
    np.testing.assert_allclose(got.se, ref.se, rtol=1e-6, atol=1e-7 * max(differ.max(initial=0), size))
    if got.measure is not None and got.measure.needs_collision_rates:  # otherwise, the result has no watch list
        assert got.watched.tolist() == ref.watch_lists[-1]
    assert got.selected.tolist() == ref.selected
    np.testing.assert_allclose(got.scores, ref.scores, rtol=1e-7, atol=1e-9)


@given(made=numeric_cases())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_belief_agrees_with_the_oracle(make_engine, made):
    case, y = made
    ref = naive.belief(case.X, y, target="numeric", **case.oracle())
    assume(not is_close_call(ref))
    agree(run(make_engine(case.X, y, case.discrete), case.settings), ref)


@pytest.mark.parametrize(("blocks", "dtype"), [(1, np.float64), (3, np.float32)])
@given(made=numeric_cases())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_sparse_rows_agree_with_the_oracle(blocks, dtype, made):
    case, y = made
    X = np.nan_to_num(case.X).astype(dtype).astype(np.float64)
    ref = naive.belief(X, y, target="numeric", **case.oracle())
    assume(not is_close_call(ref))
    rows = [sp.csr_array(part) for part in np.array_split(X.astype(dtype), blocks) if len(part)]
    agree(run(table_engine(rows, *make_numeric_target(y), case.discrete, Resources()), case.settings), ref)


# --- invariances ---

rng = np.random.default_rng(11)
M, F = 260, 12
X = rng.standard_normal((M, F))
Y = X[:, 0] * X[:, 1] + X[:, 2] + 0.2 * rng.standard_normal(M)
X[:, 3] = X[:, 2] + 0.2 * rng.standard_normal(M)
X[:, 4] = 7.0
SETTINGS = {"n_features_to_select": 6, "sample_size": 150, "random_state": 3}


@pytest.fixture(scope="module")
def reference():
    return belief.select(X, Y, **SETTINGS)


def same(a, b, rtol=1e-9):
    assert a.task == b.task == "regression"
    np.testing.assert_array_equal(a.selected, b.selected)
    for name in ("weights", "se", "null_weight"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol, atol=1e-9 * b.se.max())
    np.testing.assert_allclose(a.scores, b.scores, rtol=max(rtol, 1e-7), atol=1e-9)
    for name in ("p_neighbours", "p_value", "round"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9)


@pytest.mark.parametrize("change", [np.exp, lambda y: 5 * y - 3, np.cbrt, lambda y: np.argsort(np.argsort(y)) + 0.5])
def test_select_with_a_monotone_change_of_the_target(reference, change):
    same(belief.select(X, change(Y), **SETTINGS), reference)


def test_select_with_a_negated_target(reference):
    same(belief.select(X, -Y, **SETTINGS), reference)


def test_select_ignores_settings_of_classes(reference):
    same(belief.select(X, Y, sampling="proportional", neighborhood="per_class", **SETTINGS), reference)
    assert reference.settings["sampling"] == "random"
    assert reference.settings["neighborhood"] == "pooled"


@pytest.mark.parametrize("form", ["csv", "parquet", "svm"])
def test_select_from_files(tmp_path, reference, form):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(F)]).assign(y=Y)
    file = tmp_path / f"table.{form}"
    if form == "svm":
        from sklearn.datasets import dump_svmlight_file

        dump_svmlight_file(X, Y, str(file), zero_based=True)
    else:
        (frame.to_csv if form == "csv" else frame.to_parquet)(file, index=False)
    label = {} if form == "svm" else {"label": "y"}
    same(belief.select(file, **label, **SETTINGS), reference)
    same(belief.select(frame, label="y", **SETTINGS), reference)


def test_select_resumes_from_a_checkpoint(tmp_path, reference):
    for _ in range(2):
        same(belief.select(X, Y, checkpoint=tmp_path / "notes", **SETTINGS), reference)
    with pytest.raises(ValueError, match="belongs to other data"):
        belief.select(X, Y**3 + X[:, 5], checkpoint=tmp_path / "notes", **SETTINGS)


# --- noise ---


def planted(seed, kind):
    make = np.random.default_rng(seed)
    X = make.random((1000, 40)) if kind == "uniform" else make.standard_normal((1000, 40))
    if kind == "yes and no":
        X = (X > 0).astype(float)
    y = {"nothing": 0.0, "copies": 3 * X[:, 0]}.get(kind, 2 * X[:, 0] + X[:, 1] * X[:, 2])
    if kind == "copies":
        X[:, 1:15] = X[:, :1] + 0.1 * make.standard_normal((1000, 14))
    return X, y + 0.3 * make.standard_normal(1000)


@pytest.mark.parametrize("kind", ["nothing", "normal", "uniform", "yes and no", "copies"])
def test_p_values_of_noise_are_uniform(kind):
    """With 15 copies of a strong feature, noise has a raw z of -4, because the copies dominate the search."""
    results = [belief.select(*planted(seed, kind), 5, random_state=0) for seed in range(4)]
    p = np.concatenate([r.p_value[15:] for r in results])
    assert np.mean(p < 0.05) <= 0.11
    assert np.mean(p < 0.5) > 0.2  # they are not all 1 either
    if kind not in ("nothing", "copies"):
        assert all(r.p_value[0] < 1e-3 for r in results)


def test_n_features_to_select_auto():
    X, y = planted(0, "normal")
    assert set(belief.select(X, y, "auto", random_state=0).selected) == {0, 1, 2}
    X, y = planted(0, "nothing")
    with pytest.warns(UserWarning, match="No feature is significant"):
        assert len(belief.select(X, y, "auto", random_state=0).selected) == 1


def test_sample_grows_until_convergence():
    make = np.random.default_rng(0)
    X = make.standard_normal((20_000, 10))
    found = belief.select(X, 2 * X[:, 0] + X[:, 1] + make.standard_normal(20_000), 2, random_state=0)
    assert set(found.selected) == {0, 1}
    assert found.stop_reason == "converged"


# --- detection of the task ---

LETTERS = np.array(["a", "b"])[rng.integers(0, 2, M)]
MANY = np.arange(M) // 5


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (LETTERS, "classification"),
        (LETTERS == "a", "classification"),
        (np.arange(M) % 20, "classification"),
        (np.arange(M) % 20 + 0.0, "classification"),
        (pd.Series(np.round(Y)).astype("category"), "classification"),
        (pd.Series(np.round(Y, 1)).astype("category"), "classification"),
        (np.arange(M), "regression"),
        (np.arange(M) % 3 / 2, "regression"),
        (Y, "regression"),
        (Y.astype(np.float32), "regression"),
        (Y.tolist(), "regression"),
        (pd.Series(Y), "regression"),
        (pl.Series(Y), "regression"),
        (pa.chunked_array([Y[:9], Y[9:]]), "regression"),
        (np.array([Decimal(str(v)) for v in Y.round(3)]), "regression"),
        (np.array([Fraction(int(1000 * v), 1000) for v in Y]), "regression"),
    ],
)
def test_task_auto(y, task):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_neighbors")
        result = belief.select(X, y, 2, random_state=0)
    assert result.task == task
    assert len(result.classes) == (0 if task == "regression" else len(set(np.asarray(y).tolist())))
    assert len(result.quantiles) == (21 if task == "regression" else 0)
    assert belief.Result.from_dict(result.to_dict()).task == task


@pytest.mark.filterwarnings("ignore:n_neighbors:UserWarning")
def test_task_auto_of_many_integers():
    ages = np.random.default_rng(2).integers(18, 90, M)
    for y, task in ((MANY, "regression"), (ages, "regression"), (MANY % 30, "classification")):
        seen = "numbers to predict" if task == "regression" else "classes"
        with pytest.warns(UserWarning, match=f"whole numbers, which are treated as {seen}. Pass task='") as told:
            assert belief.select(X, y, 2, random_state=0).task == task
        assert sum("whole numbers" in str(w.message) for w in told) == 1
        assert belief.select(X, y, 2, task="regression", random_state=0).task == "regression"
    assert belief.select(X, MANY, 2, task="classification", random_state=0).task == "classification"


def test_task_given():
    assert belief.select(X, Y > 0, 2, task="classification", random_state=0).task == "classification"
    whole = belief.select(X, np.round(Y), 2, task="regression", random_state=0)
    assert whole.task == "regression"
    text = belief.select(X, np.round(Y).astype(str), 2, task="regression", random_state=0)
    np.testing.assert_array_equal(text.weights, whole.weights)


DAYS = pd.date_range("2020", periods=M)
REFUSED = {
    "NaN": (np.where(np.arange(M) == 7, np.nan, Y), r"y contains NaN \(first in row 7\)"),
    "infinity": (np.where(np.arange(M) == 7, np.inf, Y), r"y contains infinity \(first in row 7\)"),
    "one value": (np.full(M, 2.5), "y is constant: all values are 2.5"),
    "text": (LETTERS, "y contains classes, such as 'a', but task='regression' needs numbers"),
    "booleans": (LETTERS == "a", "y contains classes, such as False, but task='regression'"),
    "categories of text": (pd.Series(LETTERS).astype("category"), "contains classes, such as 'a'"),
    "some text": (np.array([*Y.astype(str)[1:], "high"]), "contains classes, such as 'high'"),
    "NaN as text": (np.array([*Y.astype(str)[1:], "nan"]), "contains NaN"),
    "dates": (DAYS, "y contains dates or times"),
    "dates as objects": (np.array([datetime.date(2020, 1, 1)] * M), "y contains dates or times"),
    "times": (DAYS - DAYS[0], "y contains dates or times"),
    "two columns": (np.column_stack([Y, Y]), "one class or number per row"),
    "None": (np.array([None, *Y[1:]], object), r"missing value \(first in row 0\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_targets_raise(name):
    y, said = REFUSED[name]
    with pytest.raises(ValueError, match=said) as error:
        belief.select(X, y, 2, task="regression")
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=said):
        BeliefSelector(2, task="regression").fit(X, y)


@pytest.mark.parametrize(
    ("y", "task", "said"),
    [
        (Y, "classification", "looks like a regression target.*pass task='regression'"),
        (DAYS, "auto", "y contains dates or times"),
        (DAYS, "classification", "260 distinct dates in 260 rows"),
        (np.full(M, 2.5), "auto", "y is constant"),
        (Y, "ranking", "task must be 'auto', 'classification' or 'regression'; got 'ranking'"),
        (Y, None, "task must be .* got None"),
    ],
)
def test_invalid_tasks_raise(y, task, said):
    with pytest.raises(ValueError, match=said):
        belief.select(X, y, 2, task=task)


def test_dates_in_a_file_raise(tmp_path):
    pq.write_table(pa.table({"x": X[:, 0], "when": pa.array(DAYS)}), tmp_path / "dates.parquet")
    with pytest.raises(ValueError, match=r"column 'when' has the type timestamp.*but must be numeric, boolean or text"):
        belief.select(tmp_path / "dates.parquet", label="when")


def test_decimals_and_dictionaries_in_a_file(tmp_path):
    prices = pa.array([Decimal(f"{v:.2f}") for v in Y])
    pq.write_table(pa.table({"x": X[:, 0], "z": X[:, 1], "price": prices}), tmp_path / "prices.parquet")
    assert belief.select(tmp_path / "prices.parquet", label="price", n_features_to_select=1).task == "regression"
    codes = pa.array(np.round(Y)).dictionary_encode()
    pq.write_table(pa.table({"x": X[:, 0], "z": X[:, 1], "code": codes}), tmp_path / "codes.parquet")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_neighbors")
        result = belief.select(tmp_path / "codes.parquet", label="code", n_features_to_select=1)
    assert result.task == "classification"


def test_csv_column_of_integers_that_become_fractions(tmp_path):
    y, long = np.arange(M) + np.where(np.arange(M) > M - 9, 0.5, 0.0), "x" * (2**24 // M)
    lines = [f"{x:.4f},{z:.4f},{t:g},{long}" for x, z, t in zip(X[:, 0], X[:, 1], y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["x,z,y,long", *lines]))  # two blocks
    with pytest.raises(ValueError, match="Correct the value, or pass task='regression'"):
        belief.select(tmp_path / "t.csv", label="y", drop=["long"])
    found = belief.select(tmp_path / "t.csv", label="y", drop=["long"], n_features_to_select=1, task="regression")
    assert found.quantiles[-1] == M - 0.5


# --- interfaces ---


@pytest.mark.filterwarnings("ignore:n_features_to_select:UserWarning")  # the tables of the checks have few columns
@pytest.mark.filterwarnings("ignore:n_neighbors:UserWarning")  # or few rows
@pytest.mark.filterwarnings("ignore:.*copies of the row itself:UserWarning")  # or columns of few values
@parametrize_with_checks([BeliefSelector(task="regression")], expected_failed_checks=lambda estimator: NOT_REPETITION)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_estimator_tags():
    def tags(task):
        found = BeliefSelector(task=task).__sklearn_tags__()
        return found.classifier_tags is not None, found.regressor_tags is not None

    assert [tags(task) for task in ("auto", "classification", "regression")] == [
        (True, True), (True, False), (False, True),
    ]  # fmt: skip


@pytest.mark.filterwarnings("default")  # this test checks warnings, too
def test_the_command_line(tmp_path, capsys):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    argv = ["select", str(tmp_path / "d.csv"), "--label", "y", "--top", "3", "--seed", "0", "--quiet"]
    assert main([*argv, "--task", "regression"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("regression: 442 rows, 10 features, target from 25 to 346; ")
    assert main(argv) == 0
    out = capsys.readouterr()
    assert out.out.splitlines()[0] == first
    assert "Pass --task classification" in out.err
    X.assign(y=y + 0.5).to_csv(tmp_path / "d.csv", index=False)
    assert main(argv) == 0
    assert capsys.readouterr().out.startswith("regression: ")
    assert main([*argv, "--task", "classification"]) == 1
    assert "--task regression" in capsys.readouterr().err
