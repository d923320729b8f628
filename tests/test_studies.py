"""Tests of study designs: given features, groups, strata and weights of rows, features per class, and stability."""

import json
import warnings
from functools import cache

import naive
import numpy as np
import pandas as pd
import polars as pl
import pytest
import traced
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import belief
from belief.engines.block import local_engine
from belief.engines.designed import DesignedEngine
from belief.method.design import Design, Units, make_strata
from belief.method.folds import nogueira_index

KINDS = (
    *("given", "groups", "uneven groups", "large group", "strata", "groups and strata"),
    *("weights", "weights and groups"),
)
PLAIN = {"n_features_to_select": 3, "n_neighbors": 3, "sample_size": 1.0, "random_state": 4}


def make_design_of(kind, y, seed=0):
    """Return a study design of this kind, and the given features, which are selected first."""
    rng, m = np.random.default_rng(seed), len(y)
    group = stratum = weight = None
    if kind in ("groups", "weights and groups"):
        group = rng.permutation(np.arange(m) % 14)
    if kind == "uneven groups":
        group = np.minimum(rng.integers(0, 40, m), rng.integers(0, 12, m))
    if kind == "large group":
        group = np.where(np.arange(m) < m // 2, 0, 1 + np.arange(m) % 15)
    if "strata" in kind:
        stratum = np.arange(m) % 2
    if kind == "groups and strata":
        group = rng.integers(0, 16, m)
    if "weights" in kind:
        weight = rng.uniform(0.1, 1.0, m)
        weight /= weight.max()
    return Design(group, stratum, weight), [2, 0] if kind == "given" else []


def make_table(seed=0, m=90, numeric=False, missing=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 7))
    X[:, 3] = X[:, 0] + 0.3 * rng.normal(size=m)
    X[:, 5] = rng.integers(0, 3, m)
    X[:, 6] = 1.0
    y = X[:, 0] + X[:, 1] if numeric else np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.8]).astype(np.int32)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, np.arange(7) == 5


def make_unstable_table():
    """Return a table in which every second row has the class of the next row, so that the selection is not stable."""
    X, y, discrete = make_table()
    y[::2] = y[1::2]
    return X, y, discrete


@cache
def oracle(kind, n=3, missing=False, make=make_table, **options):
    """Return the result of the slow oracle, cached because it is the same for all engines."""
    X, y, discrete = make(missing=True) if missing else make()
    design, given = make_design_of(kind, y)
    how = {"sampling": "balanced", "class_weight": "balanced", "k": 3, "redundancy": "agreement", "seed": 4}
    return naive.belief(X, y, n, discrete=discrete, given=given, **{**how, **options}, **vars(design))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_designs_agree_with_the_oracle(make_engine, kind):
    missing = kind not in ("groups", "weights")
    X, y, discrete = make_table(missing=missing)
    design, given = make_design_of(kind, y)
    engine = DesignedEngine(make_engine(X, y, discrete), lambda: design)
    with engine:
        got = traced.run(engine, PLAIN, given)
    ref = oracle(kind, missing=missing)
    np.testing.assert_allclose(got.weights, ref.w, rtol=1e-9, atol=1e-11)
    assert got.selected.tolist() == ref.selected
    np.testing.assert_allclose(got.scores, ref.scores, rtol=1e-7, atol=1e-9)
    if design.group is not None:
        np.testing.assert_allclose(got.se, ref.se, rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", ["given", "groups and strata", "weights", "weights and groups"])
def test_designs_with_mcr_agree_with_the_oracle(kind, missing):
    X, y, discrete = make_table(missing=missing)
    design, given = make_design_of(kind, y)
    with DesignedEngine(local_engine(X, np.arange(3), y, discrete), lambda: design) as engine:
        got = traced.run(engine, {**PLAIN, "redundancy": "mcr", "batch_size": 1.0}, given)
    ref = oracle(kind, missing=missing, redundancy="mcr", share=1.0)
    assert got.selected.tolist() == ref.selected
    np.testing.assert_allclose(got.scores, ref.scores, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", ["plain", "given", "groups", "strata", "weights"])
def test_features_for_each_class_agree_with_the_oracle(make_engine, kind):
    X, y, discrete = make_table()
    design, given = make_design_of(kind, y)
    with DesignedEngine(make_engine(X, y, discrete), lambda: design) as engine:
        got = traced.run(engine, {**PLAIN, "per_class": 2}, given)
    ref = oracle(kind, per_class=2)
    assert got.selected.tolist() == ref.selected
    assert got.selected_for.tolist() == ref.selected_for
    np.testing.assert_allclose(got.scores, ref.scores, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(got.class_weights, ref.by_class, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(got.separations, ref.apart, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(got.separation_errors, ref.apart_se, rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize("kind", ["plain", "given", "groups", "strata", "weights", "per class", "no redundancy", "mcr"])
def test_stability_agrees_with_the_oracle(make_engine, kind):
    X, y, discrete = make_unstable_table()
    design, given = make_design_of(kind, y)
    per_class = 1 if kind == "per class" else None
    redundancy = {"no redundancy": None, "mcr": "mcr"}.get(kind, "agreement")
    with DesignedEngine(make_engine(X, y, discrete), lambda: design) as engine:
        how = {**PLAIN, "n_features_to_select": 2, "stability": 12, "redundancy": redundancy, "per_class": per_class}
        got = traced.run(engine, {**how, "batch_size": 1.0}, given).stability
    how = {"redundancy": redundancy, "per_class": per_class, "stability": 12, "share": 1.0}
    ref = oracle(kind, 2, make=make_unstable_table, **how).stability
    np.testing.assert_allclose(got.frequency, ref.frequency, rtol=1e-12)
    assert ((got.frequency > 0) & (got.frequency < 1)).any(), "no half-sample differs from another"
    assert got.index == pytest.approx(ref.index, rel=1e-9)
    assert got.interval == pytest.approx(ref.interval, rel=1e-9)
    assert sorted(got.interchangeable) == ref.sets


def weak_markers(seed=1, m=240):
    """Return a table with two rare classes, most of whose markers are weak and redundant with each other."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, m, p=[0.6, 0.25, 0.15])
    X = rng.normal(size=(m, 14))
    X[:, :8] += np.repeat([0.9, 0.7], [6, 2]) * (y[:, None] == [2, 1, 2, 2, 2, 2, 1, 1])
    X[:, :2] += 5.1 * (y[:, None] == [2, 1])
    return X, y, np.zeros(14, bool)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "weights", "weak markers"])
def test_significant_features_for_each_class_agree_with_the_oracle(kind):
    X, y, discrete = weak_markers() if kind == "weak markers" else make_table(m=150)
    weight = np.random.default_rng(0).uniform(0.2, 1.0, 150) if kind == "weights" else None
    options = {"n_neighbors": 3, "random_state": 4, "copies": "keep", "discrete_features": discrete}
    n = 3 if kind == "weak markers" else 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = belief.select(X, y, 3, per_class=n, stability=10, sample_weight=weight, **options)
    ref = naive.belief(
        X, y, 3, discrete=discrete, **{**naive.DEFAULT, "k": 3}, seed=4, per_class=n, stability=10, significant=True,
        weight=weight,
    )  # fmt: skip
    assert got.selected.tolist() == ref.selected
    assert got.selected_for.tolist() == ref.selected_for
    np.testing.assert_allclose(got.scores, ref.scores, rtol=1e-3)  # the statistics of the shuffles are in float32
    np.testing.assert_allclose(got.stability.frequency, ref.stability.frequency)
    if kind == "weak markers":
        assert ((got.scores >= 0.05) & (got.scores < 0.051)).sum() >= 2


@pytest.mark.parametrize("kind", KINDS[1:])
def test_designs_of_numeric_targets_agree_with_the_oracle(kind):
    X, y, discrete = make_table(numeric=True)
    design, _ = make_design_of(kind, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = belief.select(
            X, y, 3, n_neighbors=4, sample_size=1.0, random_state=4, significance=None, copies="keep",
            discrete_features=discrete, groups=design.group, adjust_for=design.stratum, sample_weight=design.weight,
        )  # fmt: skip
    ref = naive.belief(
        X, y, 3, discrete=discrete, target="numeric", k=4, redundancy="agreement", seed=4, **vars(design)
    )
    np.testing.assert_allclose(got.weights, ref.w, rtol=1e-9, atol=1e-11)


def study(seed=0, m=400):
    """Return a table with an effect of x0 and x1, 20 columns of noise, and columns for groups, strata and weights."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(m, 22)), columns=[f"x{j}" for j in range(22)])
    frame["patient"] = [f"p{i}" for i in rng.permutation(np.arange(m) // 4)]
    frame["site"], frame["age"] = rng.choice(["a", "b"], m), rng.integers(20, 80, m)
    frame["weight"] = np.where(rng.random(m) < 0.2, 0.0, rng.uniform(0.5, 2.0, m))
    frame["class"] = np.where(frame.x0 + frame.x1 + rng.normal(size=m) > 0, "case", "control")
    return frame


ROLES = {"groups": "patient", "adjust_for": ["site", "age"], "sample_weight": "weight"}
FIXED = {"label": "class", "n_features_to_select": 3, "random_state": 0}


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_roles_by_name_by_value_and_from_files_are_the_same(tmp_path, role):
    frame = study()
    frame.to_parquet(tmp_path / "a.parquet")
    features = frame.drop(columns=[*np.atleast_1d(ROLES[role])])
    by_name = belief.select(frame, **{role: ROLES[role]}, **FIXED)
    ways = {
        "values": (features, frame[ROLES[role]]),
        "polars": (pl.from_pandas(frame), ROLES[role]),
        "file": (tmp_path / "a.parquet", ROLES[role]),
        "lazy": (pl.scan_parquet(tmp_path / "a.parquet"), ROLES[role]),
    }
    assert not set(np.atleast_1d(ROLES[role])) & set(by_name.feature_names)
    for way, (X, value) in ways.items():
        result = belief.select(X, **{role: value}, **FIXED)
        np.testing.assert_array_equal(result.weights, by_name.weights, err_msg=way)
        np.testing.assert_array_equal(result.p_value, by_name.p_value, err_msg=way)
        assert result.selected_names == by_name.selected_names, way


def test_a_checkpoint_belongs_to_its_design(tmp_path):
    frame = study()
    frame.to_parquet(tmp_path / "study.parquet")
    options = {**FIXED, "checkpoint": tmp_path / "notes", "drop": [*ROLES["adjust_for"], "patient", "weight"]}
    runs = [belief.select(tmp_path / "study.parquet", groups=np.arange(400) // 4, **options) for _ in range(2)]
    assert np.array_equal(runs[0].weights, runs[1].weights)
    with pytest.raises(ValueError, match="checkpoint"):
        belief.select(tmp_path / "study.parquet", groups=np.arange(400) // 5, **options)


def test_a_run_with_weights_continues_with_the_same_weights(tmp_path):
    frame = study(m=1200)
    frame.weight += 0.1
    frame.to_parquet(tmp_path / "study.parquet")
    options = {**FIXED, "sample_weight": "weight", "sample_size": 200, "significance": None}
    options["drop"] = [*ROLES["adjust_for"], "patient"]
    plain = belief.select(tmp_path / "study.parquet", **options)
    for _ in range(2):
        result = belief.select(tmp_path / "study.parquet", checkpoint=tmp_path / "notes", **options)
        assert np.array_equal(result.weights, plain.weights)
        assert np.array_equal(result.se, plain.se)


@pytest.mark.filterwarnings("ignore:Column 'x0' determines the target")
def test_copies_have_the_same_group_and_weight_and_count_once():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(200, 8)), rng.uniform(0.5, 2.0, 200)
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    single = belief.select(X, y, 2, random_state=0, sample_weight=weight)
    twice = np.tile(np.arange(200), 2)
    with pytest.warns(UserWarning, match="^200 of 400 rows are copies"):
        merged = belief.select(X[twice], y[twice], 2, random_state=0, sample_weight=weight[twice])
    np.testing.assert_allclose(merged.weights, single.weights, rtol=1e-9)
    with pytest.warns(UserWarning, match="^200 of 400 rows are copies"):
        plain = belief.select(X[twice], y[twice], 2, random_state=0)
    with pytest.warns(UserWarning, match="^200 of 400 rows are copies"):
        ones = belief.select(X[twice], y[twice], 2, random_state=0, sample_weight=np.ones(400))
    np.testing.assert_array_equal(ones.p_value, plain.p_value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        belief.select(X[twice], y[twice], 2, random_state=0, groups=np.arange(400))


def test_without_tests_there_is_no_univariate_p_value_that_ignores_groups():
    result = belief.select(study(), **FIXED, groups="patient", significance=None, drop=["site", "age", "weight"])
    assert np.isnan(result.p_univariate).all()


@pytest.mark.parametrize("form", ["table", "file"])
def test_a_sample_with_weights_grows_to_the_answer_of_a_fixed_one(tmp_path, form):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(5000, 12)), columns=[f"x{j}" for j in range(12)])
    score = frame @ np.linspace(0.2, 0.25, 12) + rng.normal(size=len(frame))
    frame["class"], frame["weight"] = np.where(score > 0, "a", "b"), rng.lognormal(0, 1, len(frame))
    frame.to_parquet(tmp_path / "a.parquet")
    X = frame if form == "table" else tmp_path / "a.parquet"
    options = {**FIXED, "sample_weight": "weight", "significance": None}
    grown = belief.select(X, **options, checkpoint=tmp_path / "notes" if form == "file" else None)
    assert grown.sample_size > 2000
    fixed = belief.select(X, **options, sample_size=grown.sample_size)
    np.testing.assert_allclose(grown.weights, fixed.weights, rtol=1e-9)
    np.testing.assert_allclose(grown.se, fixed.se, rtol=1e-9)
    assert grown.selected.tolist() == fixed.selected.tolist()
    if form == "file":
        again = belief.select(X, **options, checkpoint=tmp_path / "notes")
        assert np.array_equal(again.weights, grown.weights)


def test_weights_of_one_change_nothing_and_rows_of_weight_zero_do_not_exist():
    frame = study().drop(columns=["patient", "site", "age"])
    features = frame.drop(columns="weight")
    plain = belief.select(features, **FIXED)
    for ones in (np.ones(len(frame)), np.full(len(frame), 3.0)):
        assert np.array_equal(belief.select(features, sample_weight=ones, **FIXED).weights, plain.weights)
    is_used = (frame.weight > 0).to_numpy()
    zeros = belief.select(features, sample_weight=is_used.astype(float), **FIXED)
    some = belief.select(features[is_used], **FIXED)
    assert np.array_equal(zeros.weights, some.weights)
    assert np.array_equal(zeros.p_value, some.p_value)


def test_rows_are_sampled_by_weight():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 3)), rng.integers(0, 2, 5000)
    weight = np.where(np.arange(5000) < 2500, 10.0, 0.1)
    inner = local_engine(X, np.array([0, 1]), y, np.zeros(3, bool))
    engine = DesignedEngine(inner, lambda: Design(weight=weight))
    with engine:
        engine.describe()
        sample = engine.sample(np.array([500, 500]), 0)
    assert (sample.row < 2500).mean() > 0.95
    assert np.bincount(sample.target).tolist() == [500, 500]


def test_rows_are_sampled_over_groups():
    """The first queries come from different groups, although one group has half of the rows."""
    rng = np.random.default_rng(0)
    X, y, group = rng.normal(size=(400, 3)), np.arange(400) % 2, np.r_[np.zeros(200, int), 1 + np.arange(200) // 4]
    with DesignedEngine(local_engine(X, np.array([0, 1]), y, np.zeros(3, bool)), lambda: Design(group=group)) as engine:
        engine.describe()
        rows = engine.sample(np.array([51, 51]), 0).row
    assert np.bincount(group[rows]).tolist() == [2] * 51


def test_shares_of_classes_are_by_weight():
    frame = study()
    result = belief.select(frame, **FIXED, sample_weight="weight", drop=["patient"])
    by_weight = frame.groupby("class").weight.sum() / frame.weight.sum()
    np.testing.assert_allclose(result.priors, by_weight.to_numpy())


@pytest.mark.parametrize("role", ["groups", "sample_weight"])
def test_errors_by_class_are_by_folds(role):
    result = belief.select(study(), **FIXED, **{role: ROLES[role]}, significance=None)
    assert (result.class_errors > 0).all()
    np.testing.assert_allclose(np.hypot(*result.class_errors) / 2, result.se, rtol=0.5)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("missing", [False, True])
def test_a_class_of_one_row_is_not_separated(n_classes, missing):
    """The class has no hits. If their mean distance counted as 0, every feature would separate the class."""
    rng = np.random.default_rng(0)
    y = np.r_[np.arange(60) % (n_classes - 1), n_classes - 1]
    X = rng.normal(size=(61, 5))
    X[np.arange(61), y] += 2.0
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    how = {"per_class": 1, "stability": 2, "significance": None, "n_neighbors": 3, "random_state": 4}
    with pytest.warns(UserWarning, match="the smallest class has only 1 rows"):
        got = belief.select(X, y, task="classification", **how)
    ref = naive.belief(X, y, n_classes, **{**naive.DEFAULT, "k": 3}, seed=4, per_class=1, stability=2)
    np.testing.assert_allclose(got.separations, ref.apart, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(got.separation_errors, ref.apart_se, rtol=1e-6, atol=1e-11)
    assert got.selected.tolist() == ref.selected
    assert got.selected_for.tolist() == ref.selected_for == [*range(n_classes - 1)]
    assert got.stability.frequency.tolist() == ref.stability.frequency
    assert not got.separations[-1].any()
    assert not got.separation_errors[-1].any()


@pytest.mark.slow
def test_errors_of_separations_are_their_spread_over_samples():
    rng = np.random.default_rng(5)
    y = rng.choice(3, 4000, p=[0.5, 0.3, 0.2])
    X = np.log1p(rng.poisson(rng.gamma(0.5, 1.0, 9) + 1.5 * (np.arange(9) // 2 == y[:, None])))
    how = {"per_class": 1, "sample_size": 300, "significance": None}
    results = [belief.select(X, y, 1, **how, random_state=seed) for seed in range(30)]
    spread = np.std([each.separations for each in results], axis=0, ddof=1)
    errors = np.sqrt(np.mean([each.separation_errors**2 for each in results], axis=0))
    assert np.exp(np.log(errors / spread).mean()) == pytest.approx(1.0, abs=0.15)
    assert np.isnan(belief.select(X[:200], y[:200], 1, significance=None).by_class[0].separation_error).all()


def test_shuffles_move_whole_groups_within_strata():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 30, 200)
    stratum = group % 3
    units, order = Units.of(np.arange(200), Design(group, stratum), np.arange(200)), np.full(200, -1)
    units.shuffle(rng.integers(0, 2**62, 200).astype(np.uint64), order)
    assert (stratum[order] == stratum).all()
    sources = [set(group[order[group == g]]) for g in range(30)]
    assert all(len(each) == 1 for each in sources)
    assert sorted(g for each in sources for g in each) == [*range(30)]


def test_strata_are_levels_quintiles_and_missing():
    age = np.r_[np.arange(99.0), np.nan]
    assert np.bincount(make_strata([age])).tolist() == [20, 20, 20, 20, 19, 1] or len(set(make_strata([age]))) == 6
    assert len(set(make_strata([np.array(["a", "b", None], object)]))) == 3
    days = np.datetime64("2020-01-01") + np.arange(99)
    assert make_strata([np.append(days, np.datetime64("NaT"))]).tolist() == make_strata([age]).tolist()
    assert len(set(make_strata([np.arange(4) % 2, np.arange(4) // 2]))) == 4


@pytest.mark.filterwarnings("ignore:1 of 400 rows are left out")
@pytest.mark.parametrize("column", ["days", "aware", "dates", "ages"])
def test_strata_of_dates_and_missing_numbers_do_not_depend_on_the_kind_of_table(column, tmp_path):
    import pyarrow as pa

    rng = np.random.default_rng(0)
    days = pd.Series(pd.date_range("2024-01-01", periods=400))
    values = {
        "days": days,
        "aware": days.dt.tz_localize("Europe/Berlin"),
        "dates": days.dt.date,
        "ages": pd.Series([None, *rng.integers(30, 50, 399).tolist()], dtype="Int64"),
    }
    table = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"]).assign(when=values[column])
    table["y"] = table["a"] + rng.normal(size=400) > 0
    table.to_parquet(tmp_path / "rows.parquet")
    arrow = pa.Table.from_pandas(table)
    found = [
        belief.select(X, label="y", n_features_to_select=1, adjust_for="when", significance=None).weights
        for X in (table, pl.from_arrow(arrow), arrow, tmp_path / "rows.parquet")
    ]
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], rtol=1e-12)


def test_weights_of_large_integers_in_a_file(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"]).assign(y=np.arange(60) % 2)
    table["weight"] = np.where(table["a"] > 1, 0, 2**60 + 1 + rng.integers(0, 2**59, 60))
    table.to_parquet(tmp_path / "rows.parquet")
    of_file, of_table = (
        belief.select(X, label="y", n_features_to_select=1, sample_weight="weight", n_neighbors=5).weights
        for X in (tmp_path / "rows.parquet", table)
    )
    np.testing.assert_allclose(of_file, of_table, rtol=1e-12)


def noise(kind, seed):
    """Return noise, a target, and the roles of rows (groups, strata or weights) that the tests have to respect."""
    rng = np.random.default_rng(seed)
    if kind == "groups of five with one class":
        group = np.repeat(np.arange(120), 5)
        X, y = rng.normal(size=(120, 60))[group] + 0.5 * rng.normal(size=(600, 60)), rng.integers(0, 2, 120)[group]
        return X, y, {"groups": group}
    if kind == "groups of unequal sizes":
        group = np.repeat(np.arange(100), rng.integers(1, 12, 100))
        X = rng.normal(size=(100, 60))[group] + 0.5 * rng.normal(size=(len(group), 60))
        return X, rng.integers(0, 2, 100)[group], {"groups": group}
    if kind == "blocks of time":
        X = pd.DataFrame(rng.normal(size=(1000, 60))).ewm(halflife=6).mean().to_numpy()
        y = (pd.Series(rng.normal(size=1000)).ewm(halflife=6).mean() > 0).astype(int).to_numpy()
        return X, y, {"groups": np.arange(1000) // 50}
    if kind == "batches":
        batch = rng.integers(0, 2, 800)
        X = rng.normal(size=(800, 60)) + 0.8 * batch[:, None]
        return X, (rng.random(800) < np.where(batch, 0.7, 0.3)).astype(int), {"adjust_for": batch}
    X, y, weight = rng.normal(size=(800, 60)), rng.integers(0, 2, 800), rng.uniform(0.1, 2.0, 800)
    if kind == "weights that depend on the class":
        y = (rng.random(800) < 0.2).astype(int)
        weight = np.where(y == 1, rng.lognormal(0.0, 1.2, 800), 1.0)
    return X, y, {"sample_weight": weight}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        *("groups of five with one class", "groups of unequal sizes", "blocks of time", "batches", "weights"),
        "weights that depend on the class",
    ],
)
def test_noise_is_calibrated(kind):
    tables = [noise(kind, seed) for seed in range(5)]
    results = [belief.select(X, y, 3, random_state=0, **roles) for X, y, roles in tables]
    share = np.mean([(result.p_value < 0.05).mean() for result in results])
    assert share <= 0.07
    if "weights" not in kind:
        plain = np.mean([(belief.select(X, y, 3, random_state=0).p_value < 0.05).mean() for X, y, _ in tables[:2]])
        assert plain > 2 * max(share, 0.05)


def test_adjusted_features_matter_within_batches():
    X, y, roles = noise("batches", 7)
    X[:, 55:] += 0.5 * y[:, None]
    adjusted = belief.select(X, y, 5, random_state=0, **roles)
    assert sorted(adjusted.selected) == [55, 56, 57, 58, 59]
    assert (adjusted.p_value[:55] < 0.05).mean() <= 0.1


def test_an_interaction_is_found_under_weights():
    """Rows with nearly all of the weight have an interaction; the other rows have the opposite interaction."""
    rng = np.random.default_rng(0)
    X, is_light = rng.normal(size=(500, 20)), rng.random(500) < 0.5
    y = (X[:, 3] * X[:, 10] > 0) ^ is_light
    weight = np.where(is_light, 0.02, 1.0) * rng.uniform(0.5, 1.5, 500)
    plain = belief.select(X, y, 2, random_state=0, significance="permutation")
    weighted = belief.select(X, y, 2, random_state=0, sample_weight=weight)
    assert plain.p_neighbours[[3, 10]].min() > 0.01
    assert weighted.p_neighbours[[3, 10]].max() < 0.001
    assert sorted(weighted.selected) == [3, 10]


def test_a_row_of_large_weight_does_not_count_twice_in_tests_of_a_sample():
    """Rows of large weight are sampled more often, so their weight is divided by the probability of being sampled."""
    rng = np.random.default_rng(1)
    X, y, weight = rng.normal(size=(30_000, 2)), rng.integers(0, 2, 30_000), np.where(np.arange(30_000) % 2, 9.0, 1.0)
    inner = local_engine(X, np.array([0, 1]), y, np.zeros(2, bool))
    with DesignedEngine(inner, lambda: Design(weight=weight)) as engine:
        engine.describe()
        rows = engine.sample(np.array([1000, 1000]), 0).row
        found = engine.weigh(rows, rows)
    is_heavy = weight[rows] == 9.0
    assert is_heavy.mean() > 0.85
    assert found[is_heavy].sum() / found.sum() == pytest.approx(0.9, abs=0.02)
    assert found.sum() == pytest.approx(weight.sum(), rel=0.05)


def test_small_cells_are_left_out_with_a_warning():
    X, y, roles = noise("batches", 0)
    batch = roles["adjust_for"].copy()
    batch[:9] = 2
    with pytest.warns(UserWarning, match=r"^9 of 800 rows are left out: adjust_for makes 3 strata"):
        belief.select(X, y, 3, adjust_for=batch, random_state=0)


def test_given_features_come_first_and_others_lose_what_they_share():
    frame = study()[[*(f"x{j}" for j in range(22)), "class"]]
    frame["copy"] = frame.x0 + 0.05 * frame.x2
    plain = belief.select(frame, **FIXED, sample_size=400)
    result = belief.select(frame, given=["x0"], label="class", n_features_to_select=2, random_state=0)
    assert result.selected_names[0] == "x0"
    assert "copy" not in result.selected_names
    assert result.explain("x0").reason == "given"
    assert len(result.selected) == 3
    assert result.given.tolist() == [0]
    assert set(plain.selected_names) & {"x0", "copy"}
    by_number = belief.select(frame, given=[0], label="class", n_features_to_select=2, random_state=0)
    assert by_number.selected.tolist() == result.selected.tolist()
    twice = belief.select(frame, given=["x0", 0], label="class", n_features_to_select=2, random_state=0)
    assert twice.selected.tolist() == result.selected.tolist()
    auto = belief.select(frame, given="x0", label="class", n_features_to_select="auto", random_state=0)
    assert auto.selected_names[:2] == ["x0", "x1"]


@pytest.mark.parametrize("redundancy", ["agreement", "mcr", None])
def test_given_features_may_be_constant_or_noise(redundancy):
    frame = study()[[*(f"x{j}" for j in range(22)), "class"]].assign(same=1.0)
    result = belief.select(frame, given=["same", "x9"], redundancy=redundancy, **FIXED)
    assert sorted(result.selected_names[:2]) == ["same", "x9"]
    assert len(result.selected) == 5


def cells(seed=0):
    """Return simulated single-cell counts and cell types; each type has 10 markers, and three are rare (3, 2, 1 %)."""
    rng = np.random.default_rng(seed)
    shares = [0.4, 0.3, 0.24, 0.03, 0.02, 0.01]
    types = rng.choice(6, 4000, p=shares)
    rate = rng.gamma(0.3, 1.0, 1000)[None] * np.ones((4000, 1))
    for t in range(6):
        rate[np.ix_(types == t, range(10 * t, 10 * t + 10))] += 1.5
    return np.log1p(rng.poisson(rate)), np.array(["T", "B", "NK", "mast", "pDC", "ILC"])[types]


@pytest.mark.slow
def test_every_rare_type_has_its_markers():
    X, types = cells()
    result = belief.select(X, types, per_class=10, random_state=0)
    names = result.classes.tolist()
    for t, name in enumerate(["T", "B", "NK", "mast", "pDC", "ILC"]):
        mine = result.selected[result.selected_for == names.index(name)]
        assert np.isin(mine, np.arange(10 * t, 10 * t + 10)).sum() >= 9
    assert result.explain(int(result.selected[3])).reason.startswith("selected for class")


@pytest.mark.parametrize("significance", ["permutation", None])
def test_a_marker_that_not_all_rows_of_its_class_have_is_selected_for_it(significance):
    rng = np.random.default_rng(0)
    y, of_class = np.repeat(np.arange(4), 150), np.arange(4).repeat(3)
    markers = (of_class == y[:, None]) & (rng.random((600, 12)) < 0.3)
    result = belief.select(
        np.hstack([markers, rng.random((600, 20))]), y, 1, per_class=3, random_state=0, significance=significance
    )
    assert (result.class_weights[:, :12].argmax(axis=0) != of_class).sum() > 6, "the weights would select them, too"
    ranks = np.array([ranking.rank for ranking in result.by_class.values()])
    assert all(sorted(ranks[c, of_class_c]) == [1, 2, 3] for c, of_class_c in enumerate(np.arange(12).reshape(4, 3)))
    plain = belief.select(np.hstack([markers, rng.random((600, 20))]), y, 1, random_state=0, significance=significance)
    assert [plain.explain(j).best_class for j in range(12)] == of_class.astype(str).tolist()
    assert [sorted(result.selected[result.selected_for == c]) for c in range(4)] == np.arange(12).reshape(4, 3).tolist()


def test_weights_by_class_add_up():
    X, types = cells()
    result = belief.select(X[:1500, :80], types[:1500], 5, random_state=0, significance=None)
    for each in ("weight", "separation"):
        mean = np.mean([getattr(ranking, each) for ranking in result.by_class.values()], axis=0)
        np.testing.assert_allclose(mean, result.weights, atol=1e-12)
    assert belief.Result.from_dict(result.to_dict()).by_class["T"].rank.tolist() == result.by_class["T"].rank.tolist()


def test_stability_finds_what_is_selected_again():
    frame = study(m=600)[[*(f"x{j}" for j in range(22)), "class"]]
    frame["twin"] = frame.x0 + 0.3 * np.random.default_rng(1).normal(size=600)
    result = belief.select(frame, label="class", n_features_to_select=2, stability=50, random_state=0)
    found = result.stability
    assert found.frequency[1] > 0.9
    assert found.frequency.sum() == pytest.approx(2.0)
    assert [0, 22] in found.interchangeable or min(found.frequency[[0, 22]]) == 0
    assert found.interval[0] <= found.index <= found.interval[1] <= 1.0
    again = belief.Result.from_dict(result.to_dict()).stability
    assert again.index == found.index
    assert np.array_equal(again.frequency, found.frequency)
    without = belief.select(frame, label="class", n_features_to_select=2, random_state=0)
    assert np.array_equal(without.weights, result.weights)
    assert without.stability is None


def test_nogueira_index_of_known_sets():
    same = np.tile(np.arange(20) < 4, (30, 1))
    assert nogueira_index(same) == (1.0, (1.0, 1.0))
    rng = np.random.default_rng(0)
    random = np.array([np.isin(np.arange(20), rng.choice(20, 4, replace=False)) for _ in range(2000)])
    index, (low, high) = nogueira_index(random)
    assert low - 0.01 <= 0 <= high + 0.01
    assert abs(index) < 0.01


def test_grid_search_routes_groups_and_weights():
    import sklearn

    frame = study()
    X, y = frame[[f"x{j}" for j in range(22)]].to_numpy(), frame["class"].to_numpy()
    with sklearn.config_context(enable_metadata_routing=True):
        selector = belief.BeliefSelector(2, random_state=0, significance=None)
        selector.set_fit_request(groups=True, sample_weight=True)
        tree = DecisionTreeClassifier(max_depth=2, random_state=0).set_fit_request(sample_weight=False)
        pipeline = make_pipeline(selector, tree)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        search = GridSearchCV(pipeline, {"beliefselector__n_features_to_select": [1, 2]}, scoring=scorer, cv=2)
        roles = {"groups": frame.patient.to_numpy(), "sample_weight": np.ones(len(X)) + (np.arange(len(X)) % 2)}
        search.fit(X, y, **roles)
    found = search.best_estimator_[0].result_
    for left_out in ({}, {"groups": None}, {"sample_weight": None}):
        same = belief.select(X, y, 2, random_state=0, significance=None, **{**roles, **left_out})
        assert np.array_equal(found.weights, same.weights) == (not left_out)


@pytest.mark.parametrize("n", [("--top", {"n_features_to_select": 2}), ("--per-class", {"per_class": 2})])
def test_the_command_line_has_all_study_designs(tmp_path, n):
    from belief.cli import commands

    frame, file, (option, setting) = study(), tmp_path / "study.csv", n
    frame.weight += 0.1
    frame.to_csv(file, index=False)
    words = "--groups patient --adjust-for site age --sample-weight weight --given x5 --stability 10 --seed 0 --quiet"
    asked = [str(file), "--label", "class", option, "2", *words.split(), "--out", str(tmp_path / "found.json")]
    assert commands.main(["select", *asked]) == 0
    found = belief.Result.from_dict(json.loads((tmp_path / "found.json").read_text()))
    same = belief.select(file, label="class", random_state=0, **ROLES, given=["x5"], stability=10, **setting)
    for name in ("weights", "se", "p_value", "selected", "selected_for", "separation_errors"):
        np.testing.assert_array_equal(getattr(found, name), getattr(same, name), err_msg=name)
    assert found.stability.index == same.stability.index


BAD = {
    "one group": ({"groups": np.zeros(400)}, "groups has only one group"),
    "missing group": ({"groups": [None, *range(399)]}, "groups has missing values"),
    "unknown column": ({"groups": "patients"}, "groups: there is no column 'patients' in X .did you mean 'patient'"),
    "target": ({"groups": "class"}, "Column 'class' is the target. Pass another column as groups."),
    "zeros": ({"sample_weight": np.arange(400) % 2}, "sample_weight is 0 for some rows, but X is read from a file"),
    "negative": ({"sample_weight": -np.ones(400)}, "sample_weight must hold numbers of at least 0"),
    "no weight": ({"sample_weight": np.zeros(400)}, "sample_weight is zero for all rows"),
    "text": ({"sample_weight": ["a"] * 400}, "sample_weight must hold numbers"),
    "short": ({"groups": np.arange(10)}, "groups has 10 values, but X has 400 rows"),
    "given": ({"given": "y9"}, "given: there is no column 'y9'"),
    "given that is dropped": ({"given": "x0", "drop": ["x0"]}, "given: there is no column 'x0' in the features of X"),
    "one group per class": (
        {"groups": (study()["class"] == "case").to_numpy()},
        "groups has no two groups that can be compared",
    ),
    "one group per stratum": (
        {"groups": "site", "adjust_for": "site"},
        "groups has no two groups that can be compared",
    ),
    "one half-sample": ({"stability": 1}, "stability must be 0 or an integer of at least 2; got 1"),
    "strata": ({"adjust_for": np.arange(400).astype(str)}, "adjust_for makes 400 strata"),
    "per_class": ({"per_class": 2, "redundancy": None}, "per_class=2 cannot be combined with redundancy=None"),
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_unusable_columns_of_weights_raise(tmp_path, ending):
    frame, file = study(), tmp_path / f"X.{ending}"
    frame.loc[3, "weight"] = np.nan
    frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
    for X in (file, frame):
        with pytest.raises(ValueError, match="sample_weight must hold numbers of at least 0; it contains nan"):
            belief.select(X, sample_weight="weight", **FIXED)
        with pytest.raises(ValueError, match="sample_weight must hold numbers"):
            belief.select(X, sample_weight="site", **FIXED)


@pytest.mark.parametrize("bad", BAD)
def test_unusable_designs_raise(bad, tmp_path):
    options, message = BAD[bad]
    if bad != "zeros":  # a table in memory may have weights of 0
        with pytest.raises(ValueError, match=message):
            belief.select(study(), **options, **FIXED)
    study().to_csv(tmp_path / "X.csv", index=False)
    with pytest.raises(ValueError, match=message.replace("in X .", r"in .*X\.csv .")):
        belief.select(tmp_path / "X.csv", **options, **FIXED)
