"""The conformance suite: every engine implements the Engine protocol with the same results."""

import os
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

import naive
import numpy as np
import pytest
import traced
from conftest import in_blocks, in_memory, streamed
from pool_cluster import pool, pool_engine
from scipy.sparse import csr_array
from spark_sessions import start_session

from belief.data.labels import read_labels
from belief.engines.block import local_engine, table_engine
from belief.engines.block.small import SmallEngine
from belief.engines.records import flatten
from belief.engines.resources import Resources
from belief.engines.spark.engine import ClusterEngine
from belief.engines.spark.executors import frame_engine
from belief.engines.spark.folder import balance_tasks
from belief.engines.spark.frame import open_frame
from belief.engines.spark.staging import narrow
from belief.method.difference import Difference
from belief.method.partials import Pairs
from belief.method.protocols import Search
from belief.method.redundancy.agreement import compute_correlation
from belief.method.redundancy.collisions import Collisions
from belief.method.settings import PAPER, Settings

pytestmark = pytest.mark.slow
CLOSE = {"rtol": 1e-9, "atol": 1e-11}
RATES = Collisions(0.8, by="hit")
M, F, KINDS = 260, 9, 5
rng = np.random.default_rng(7)
LABELS = np.sort(rng.integers(0, 3, M)).astype(np.int32)
DISCRETE = np.arange(F) == 3
PLAIN = (rng.standard_normal((M, F)) + LABELS[:, None] * (np.arange(F) < 2)) * (rng.random((M, F)) < 0.2)
PLAIN[:, 3] = rng.integers(0, 3, M) * (rng.random(M) < 0.5)
PLAIN[-20:] = PLAIN[:20]  # copies of rows cause ties
MISSING = np.where(rng.random((M, F)) < 0.15, np.nan, PLAIN)
VALUES = {"plain": PLAIN, "missing": MISSING}


def local(source, X, small_rows=0, **options):
    """Return the engine for a table in memory; by default, small tables take the code path of large ones."""
    resources = Resources(small_rows=small_rows, **options)
    return local_engine(source(X), np.arange(3), LABELS, DISCRETE, resources)


def on_spark(staging, X, y=LABELS):
    rows = [(x.tolist(), t) for x, t in zip(X, y.tolist(), strict=True)]
    df = start_session().createDataFrame(rows, f"features array<double>, label {'int' if y is LABELS else 'double'}")
    return frame_engine(open_frame(df.coalesce(3), "features", "label", list(DISCRETE)), staging)


MAKE = {
    "dense": partial(local, in_memory),
    "int8": partial(local, in_memory, instructions="int8"),
    "small": partial(local, in_memory, small_rows=1024),
    "small blocks, streamed": lambda X: streamed(X, LABELS, DISCRETE),
    "in blocks": partial(local, in_blocks, working_memory=2**14),
    "sparse": partial(local, csr_array),
    "torch": partial(local, in_memory, torch_devices=("cpu",)),
    "torch, little memory": partial(local, in_blocks, torch_devices=("cpu",), working_memory=2**9),
    "two torch devices": partial(local, in_memory, torch_devices=("cpu", "cpu")),
    "streamed to torch": lambda X: streamed(X, LABELS, DISCRETE, torch_devices=("cpu",), small_rows=0),
    "streamed": lambda X: streamed(X, LABELS, DISCRETE, small_rows=0),
    "streamed, int8": lambda X: streamed(X, LABELS, DISCRETE, small_rows=0, instructions="int8"),
    "pool": lambda X: pool_engine(X, LABELS, DISCRETE),
    "pool, sparse": lambda X: pool_engine(csr_array(X), LABELS, DISCRETE, n_parts=4),
    "pool, some sparse": lambda X: pool_engine(csr_array(X), LABELS, DISCRETE, mixed=True),
    "pool, some dense": lambda X: pool_engine(csr_array(X), LABELS, DISCRETE, n_parts=30, mixed=True),
    "Spark, files": partial(on_spark, "auto"),
    "Spark, persisted": partial(on_spark, "memory"),
}
if "SPARK_REMOTE" in os.environ:
    MAKE = {name: make for name, make in MAKE.items() if "Spark" in name}
CASES = [(name, "plain") for name in MAKE]
HOLES = ("dense", "int8", "small", "in blocks", "streamed", "pool", "torch", "streamed to torch", "Spark, files")
HOLES += ("small blocks, streamed",)
CASES += [(name, "missing") for name in HOLES if name in MAKE]


@pytest.fixture(scope="module", params=CASES, ids=", ".join)
def case(request, _stopped_at_the_end):
    """Return the name of the table, an engine that has described the data, and a reference engine."""
    name, values = request.param
    X = VALUES[values]
    with ExitStack() as stack:
        right = stack.enter_context(local(in_memory, X))
        engine = stack.enter_context(MAKE[name](X))
        assert isinstance(engine, SmallEngine) == (name == "small")
        if isinstance(engine, ClusterEngine):
            engine.cluster.min_block_bytes = 0  # so that there are several blocks
        engine.describe()
        if isinstance(engine, ClusterEngine):
            engine.gathered.portion_pairs = 50
        if "pool" in name:  # many portions, gathered in several rounds
            engine.gathered.portion_bytes, engine.gathered.gather_pairs = 2**12, 150
        yield values, engine, right


@pytest.fixture
def difference(case):
    return Difference.from_summary(case[2].describe(), DISCRETE, "standard")


def comparable(record):
    """Return the fields of a record by name, in a form that is the same for all engines.

    A summary has sums and means of x - origin, where `origin` is one of the values of the feature. The blocks of an
    engine determine which value it is. So the sums and means are converted to those of x, and `origin` is removed.
    """
    fields = flatten(record)
    if "origin" in fields:
        origin = np.nan_to_num(fields.pop("origin"))
        fields["group_sum"] = fields["group_sum"] + origin * fields["group_count"]
        fields["shift"] = fields["shift"] + origin
    return fields


def same(got, wanted):
    got, wanted = comparable(got), comparable(wanted)
    assert set(got) == set(wanted)
    for name, x in wanted.items():
        assert np.shape(got[name]) == np.shape(x), name
        np.testing.assert_allclose(got[name], x, **CLOSE, err_msg=name)


def pairs(seed, weights=False, n_queries=30):
    """Return random pairs of random kinds, sorted by query."""
    draw = np.random.default_rng(seed)
    query = np.repeat(draw.permutation(M)[:n_queries], 7)
    neighbour = draw.integers(0, M, len(query))
    kind = draw.integers(0, KINDS - 1, len(query))
    return Pairs(query, neighbour, kind, KINDS, draw.random(len(query)) if weights else None)


# --- summary and sample ---


def test_describe(case):
    _, engine, right = case
    wanted = right.describe()
    for _ in range(2):
        same(engine.describe(), wanted)
    assert engine.n_features == F
    np.testing.assert_array_equal(engine.discrete, DISCRETE)
    np.testing.assert_array_equal(engine.target.names, np.arange(3))
    np.testing.assert_array_equal(engine.target.counts, np.bincount(LABELS))
    assert engine.fingerprint() == engine.fingerprint()


@pytest.mark.parametrize("quota", [[40], [M], [10, 5, 7]])
def test_sample(case, quota):
    _, engine, right = case
    for seed in (3, 4, 3):
        sample = engine.sample(np.array(quota), seed)
        same(sample, right.sample(np.array(quota), seed))
        np.testing.assert_array_equal(sample.target, LABELS[sample.row])


# --- neighbours ---


@cache
def neighbours_of_oracle(values, features=tuple(range(F)), neighborhood="per_class"):
    """Return the neighbours from the oracle. They are cached, because it is slow and the same for all engines."""
    X, discrete = VALUES[values][:, features], DISCRETE[list(features)]
    asked = {"discrete": discrete, "k": 4, "s": 50, "scale": "standard", "neighborhood": neighborhood, "seed": 5}
    return naive.belief(X, LABELS, 1, **asked).neighbours


@pytest.mark.parametrize("neighborhood", ["per_class", "pooled"])
def test_nearest(case, difference, neighborhood):
    values, engine, _ = case
    wanted = neighbours_of_oracle(values, neighborhood=neighborhood)
    search = Search(4, 3, 5) if neighborhood == "per_class" else Search(12, 1, 5)
    engine.sample(np.array([20]), 1)  # nearest must not depend on the last sample
    for sample in [right_sample := case[2].sample(np.array([50]), 5)] * 2:
        found = engine.nearest(sample, difference, search)
        for q, rows in zip(sample.row.tolist(), found.row, strict=True):
            assert rows[rows >= 0].tolist() == wanted[q]
        np.testing.assert_array_equal(found.target, LABELS[found.row])
    assert len(right_sample.row) == 50


@pytest.mark.parametrize("features", [(4,), (0, 3, 5), tuple(range(F))], ids=["one", "some", "all"])
def test_nearest_by_some_features(case, difference, features):
    """The neighbours are the same as in a table that has only these columns."""
    values, engine, right = case
    sample = right.sample(np.array([50]), 5)
    found = engine.nearest(sample, difference.restrict(np.array(features)), Search(4, 3, 5))
    wanted = neighbours_of_oracle(values, features)
    for q, rows in zip(sample.row.tolist(), found.row, strict=True):
        assert rows[rows >= 0].tolist() == wanted[q]


# --- sums over pairs ---


def check_tallies(case, batches, difference, rates):
    _, engine, right = case
    got = list(engine.tally(batches, difference, rates))
    assert len(got) == len(batches)
    for a, b in zip(got, right.tally(batches, difference, rates), strict=True):
        same(a, b)
    return got


@pytest.mark.parametrize("weights", [False, True])
def test_tally_repeated_reordered_and_without_prefetch(case, difference, weights):
    _, engine, _ = case
    first, second, unannounced = (pairs(seed, weights) for seed in (1, 2, 3))
    engine.prefetch([first, second])
    for batches in ([first, second], [first, second], [second, first], [unannounced, first], [second]):
        check_tallies(case, batches, difference, RATES)


def test_tally_of_the_same_queries_with_other_neighbours(case, difference):
    known = pairs(1)
    others = replace(known, neighbour=(known.neighbour + 100) % M)
    some = known.take(slice(0, 70))
    in_couples = replace(known, n_kinds=KINDS + 1)
    for batch in (known, others, some, replace(some, kind=some.kind % 2, n_kinds=2), in_couples, known):
        check_tallies(case, [batch], difference, RATES)


def test_tally_of_a_growing_sample(case, difference):
    whole = pairs(9, n_queries=60)
    few, more = whole.take(slice(0, 140)), whole.take(slice(140, None))
    case[1].prefetch([few])
    check_tallies(case, [few], difference, RATES)
    case[1].prefetch([more])
    check_tallies(case, [few, more], difference, RATES)
    check_tallies(case, [whole], difference, RATES)  # one batch instead of two


def test_tally_without_rates(case, difference):
    for tally in check_tallies(case, [pairs(1), pairs(2, weights=True)], difference, None):
        assert len(tally.rates) == 0


@pytest.mark.parametrize("columns", [[4], [0, 1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 7]])
def test_joint_and_joint_floor(case, difference, columns):
    _, engine, right = case
    columns = np.array(columns)
    watches = [(pairs(1), np.array([3, 5])), (pairs(11), np.array([8])), (pairs(2), np.arange(F))]
    for order in (slice(None), slice(None), slice(None, None, -1)):
        asked = (difference, RATES, watches[order], columns)
        got, wanted = engine.joint(*asked), right.joint(*asked)
        for a, b in zip(got, wanted, strict=True):
            same(a, b)
        # bounds summed in float32 by parts may be tighter than those summed at once
        for low, lowest, joint in zip(engine.joint_floor(*asked), right.joint_floor(*asked), wanted, strict=True):
            assert np.all(low >= lowest * (1 - 1e-5))
            assert np.all(low <= joint.joint + 1e-9)


def test_joint_by_rate(case, difference):
    """For sparse rows, engines sum the complements of the rates, which have the same correlation."""
    _, engine, right = case
    watches = [(pairs(1), np.array([3, 5])), (pairs(2), np.arange(F))]
    asked = (difference, Collisions(0.8, by="rate"), watches, np.array([2, 3, 7, 0]))
    for got, wanted in zip(engine.joint(*asked), right.joint(*asked), strict=True):
        np.testing.assert_allclose(compute_correlation(got), compute_correlation(wanted), rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(got.pairs, wanted.pairs)


@pytest.mark.parametrize("weights", [False, True])
def test_tally_spread_over_queries(case, difference, weights):
    """To compute the spread, all pairs of a query must be in one sum, wherever their rows are stored."""
    batches = []
    for seed in (4, 5):
        some = pairs(seed, weights)
        group = np.random.default_rng(seed).integers(0, 2, M)[some.query]
        kind = 2 * group + (0 if weights else some.kind % 2)
        batches.append(replace(some, kind=kind, n_kinds=4, coupled=True))
    for tally in check_tallies(case, batches, difference, None):
        assert len(tally.spread) == (7 if weights else 2)


def test_rows(case):
    X, engine = VALUES[case[0]], case[1]
    for ids in (np.array([5, 3, 250]), np.random.default_rng(1).permutation(M)):
        got = engine.rows(ids, np.array([7, 0, 3]))
        if DISCRETE[3] and engine.discrete[3]:  # engines may choose the codes of nominal features
            np.testing.assert_allclose(got[:, :2], X[np.ix_(ids, [7, 0])])
        np.testing.assert_array_equal(np.isnan(got), np.isnan(X[np.ix_(ids, [7, 0, 3])]))


# --- the whole method ---

SETTINGS = Settings(n_features_to_select=5, n_neighbors=4, sample_size=80, random_state=3, scale="standard")


def check_outcome(got, wanted):
    assert got.selected.tolist() == wanted.selected.tolist()
    np.testing.assert_allclose(got.weights, wanted.weights, **CLOSE)
    np.testing.assert_allclose(got.scores, wanted.scores, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(got.se, wanted.se, **CLOSE)
    for name in ("p_neighbours", "round", "metric"):  # the probe is the same on all engines, and sums are exact
        np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name), err_msg=name)
    np.testing.assert_allclose(got.p_value, wanted.p_value, rtol=1e-6, atol=1e-290)
    np.testing.assert_allclose(got.null_weight, wanted.null_weight, **CLOSE)
    same(got.tally, wanted.tally)


@cache
def outcome(values, settings):
    """Return the result of the reference engine."""
    with local(in_memory, VALUES[values]) as engine:
        return traced.run(engine, settings)


def test_belief(case):
    values, engine, _ = case
    got = traced.run(engine, SETTINGS)
    check_outcome(got, outcome(values, SETTINGS))
    assert np.isfinite(got.p_neighbours).sum() >= 5  # otherwise, nothing is compared
    assert got.q_value[:2].max() < 0.05 < got.q_value[2:].min()


def test_belief_with_the_settings_of_the_paper(case):
    values, engine, _ = case
    paper = Settings(**{**PAPER, "n_features_to_select": 5, "n_neighbors": 4, "sample_size": 80, "random_state": 3})
    check_outcome(traced.run(engine, paper), outcome(values, paper))


@pytest.mark.usefixtures("_stopped_at_the_end")
@pytest.mark.parametrize("name", list(MAKE))
def test_belief_merges_copies(name):
    merging = replace(SETTINGS, copies="merge", sample_size=240)
    with MAKE[name](PLAIN) as engine:
        got = traced.run(engine, merging)
    assert got.sample_size == min(240, len(np.unique(np.column_stack([PLAIN, LABELS]), axis=0))) < M
    check_outcome(got, outcome("plain", merging))


NUMBERS = np.round(PLAIN[:, 0] * PLAIN[:, 1] + PLAIN[:, 4] + 0.05 * rng.standard_normal(M), 2)  # with ties


NUMERIC = {
    "streamed": lambda: streamed(PLAIN, NUMBERS, DISCRETE),
    "pool": lambda: pool_engine(PLAIN, NUMBERS, DISCRETE),
    "pool, sparse": lambda: pool_engine(csr_array(PLAIN), NUMBERS, DISCRETE, n_parts=4),
    "Spark, files": lambda: on_spark("auto", PLAIN, NUMBERS),
    "Spark, persisted": lambda: on_spark("memory", PLAIN, NUMBERS),
}


@pytest.mark.usefixtures("_stopped_at_the_end")
@pytest.mark.parametrize("name", NUMERIC if "SPARK_REMOTE" not in os.environ else ["Spark, files"])
def test_belief_with_numeric_targets(name):
    target, ranks = read_labels(NUMBERS, M, "auto").target()
    with NUMERIC[name]() as engine, table_engine(in_memory(PLAIN), target, ranks, DISCRETE) as right:
        got, wanted = traced.run(engine, SETTINGS), traced.run(right, SETTINGS)
        assert engine.target.task == "regression"
    check_outcome(got, wanted)


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="does not use Spark")
def test_layout_is_dense_unless_most_rows_are_sparse():
    forms = {"pool": True, "pool, sparse": False, "pool, some sparse": True, "pool, some dense": False}
    for name, dense in forms.items():
        with MAKE[name](PLAIN) as engine:
            engine.describe()
            assert engine.layout.dense == dense


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="does not use Spark")
@pytest.mark.parametrize("narrow", [M, M // 3])
def test_stage_narrows_doubles_to_float32_without_loss(narrow):
    """If only some blocks can be narrowed, workers get doubles."""
    X = MISSING.copy()
    X[:narrow] = X[:narrow].astype(np.float32)
    with pool_engine(X, LABELS, DISCRETE) as engine, local(in_memory, X) as right:
        check_outcome(traced.run(engine, SETTINGS), traced.run(right, SETTINGS))
        assert engine.layout.dtype == ("<f4" if narrow == M else "<f8")
        blocks = engine.staged.files.read(range(len(engine.staged.files)), None)
        assert {block.X.dtype.str for block in blocks} == {engine.layout.dtype}


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="does not use Spark")
@pytest.mark.parametrize("value", [0.1, 1e300, 1e-60, float(2**24 + 1)])
def test_narrow_keeps_doubles_that_float32_would_change(value):
    X = np.array([[1.5, -0.0], [np.nan, np.inf]])
    assert narrow([X])[0].dtype == np.float32
    np.testing.assert_array_equal(narrow([X])[0].view(np.uint32), X.astype(np.float32).view(np.uint32))
    assert narrow([X, np.append(X, [[2.0, value]], axis=0)])[0].dtype == np.float64


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="does not use Spark")
def test_balance_tasks():
    sizes = [17, 17, 17, 12, 17, 17, 17, 12, 17, 17, 17, 12, 13]  # round robin would give 114 and 88 rows
    mine = balance_tasks(sizes, 2)
    assert sorted(mine[0] + mine[1]) == list(range(13))
    assert all(x == sorted(x) for x in mine)
    assert abs(sum(sizes[i] for i in mine[0]) - sum(sizes) / 2) <= 6
    assert balance_tasks([5], 1) == [[0]]


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="does not use Spark")
@pytest.mark.parametrize("what", ["searching", "tallying", "comparing features"])
def test_a_pool_that_loses_a_worker_gives_the_same_result(what):
    before = pool().broken
    with pool_engine(MISSING, LABELS, DISCRETE, kill_in=what) as engine, local(in_memory, MISSING) as right:
        engine.describe()
        engine.gathered.portion_pairs = 50
        check_outcome(traced.run(engine, SETTINGS), traced.run(right, SETTINGS))
    assert pool().broken == before + 1
