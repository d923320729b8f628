"""The engine for GPUs gives the CPU engine's answers; on torch's CPU device here, and on a GPU too where there is one.

Every test of the method runs on it as well: see `make_engine`.
"""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import naive
import numpy as np
import pytest
from random_tables import table
from scipy.sparse import csr_array

import belief
from belief._utils.optional import MissingExtraError
from belief.data.source import ArraySource
from belief.engines.block import block_engine, dense
from belief.engines.device import WORTH, devices_for
from belief.engines.resources import Resources
from belief.method.difference import Difference
from belief.method.partials import Neighbours, Pairs
from belief.method.protocols import Search, Visit
from belief.method.redundancy.collisions import Collisions
from belief.method.sampling import Sample
from belief.method.univariate import univariate_p_values

torch = pytest.importorskip("torch", reason="the engine for GPUs needs torch: pip install 'belief-fs[gpu]'")
from belief.engines.block import gpu, stored  # noqa: E402
from belief.kernels.gpu import exact, points, scan, search  # noqa: E402

DEVICES = ["torch-cpu"] + (["cuda"] if torch.cuda.is_available() else [])


def engine_of(X, labels, discrete, device, **resources):
    return block_engine(ArraySource(X), labels, discrete, Resources(device=device, **resources))


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch):
    """Small tables go the way of large ones: several chunks, several parts, lists that overflow."""
    monkeypatch.setattr(gpu, "START", 64)
    monkeypatch.setattr(gpu, "MOST", 200)
    monkeypatch.setattr(search, "CAPACITY", 32)
    monkeypatch.setattr(search, "QUERIES", 70)
    monkeypatch.setattr(scan, "HEAD", 64)


# --- the same answer ---


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(21))
def test_the_whole_fit_is_that_of_the_cpu(seed, device):
    X, discrete, labels = table(seed)
    how = {"discrete_features": discrete, "n_neighbors": 7, "sample_size": 100, "random_state": seed}
    how["redundancy"] = ["agreement", "mcr", None][seed % 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few rows of the rare class
        cpu, mine = (belief.select(X, labels, 0.5, device=name, **how) for name in ("cpu", device))
    np.testing.assert_allclose(mine.weights, cpu.weights, rtol=1e-9, atol=1e-12)
    assert mine.selected.tolist() == cpu.selected.tolist()
    np.testing.assert_allclose(mine.scores, cpu.scores, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(14))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_neighbours_are_those_of_the_cpu(seed, device, dtype):
    X, discrete, labels = table(100 + seed)
    X, rng = X.astype(dtype), np.random.default_rng(seed)
    rows = rng.permutation(len(X))[: int(rng.integers(1, 200))]
    sample = Sample(rows.astype(np.uint64), rows, labels[rows])
    asked = Search(int(rng.integers(1, 21)), int(rng.choice([1, 3])), seed)
    found = []
    for name in ("cpu", device):
        with engine_of(X, labels, discrete, name) as engine:
            difference = Difference.from_summary(engine.describe(), discrete, "standard")
            found.append(engine.nearest(sample, difference, asked))
    cpu, mine = found
    for name in ("row", "target", "key", "d2"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(cpu, name))


@pytest.mark.parametrize("device", DEVICES)
def test_blocks_that_are_visited_make_the_whole(device):
    X, discrete, labels = table(6)
    rows = np.arange(0, len(X), 3)
    sample, asked = Sample(rows.astype(np.uint64), rows, labels[rows]), Search(6, 3, 1)
    with engine_of(X, labels, discrete, "cpu") as engine:
        difference = Difference.from_summary(engine.describe(), discrete, "standard")
        whole = engine.nearest(sample, difference, asked)
    found, ready = Neighbours.zero(len(rows), 3, 6), {}
    for part in np.array_split(np.arange(len(X)), 4):
        with engine_of(X[part], labels[part], discrete, device) as engine:
            visit = Visit(ArraySource(X[rows]), int(part[0]), found, ready)
            found = engine.nearest(sample, difference, asked, visit)
    assert len(ready) == 1  # made ready by the first block alone
    np.testing.assert_array_equal(found.row, whole.row)
    np.testing.assert_array_equal(found.target, whole.target)


def pairs_for(kind, rng, n, labels):
    """Pairs of every sort there is: coupled or not, with weights or not."""
    query = np.repeat(rng.permutation(n)[:40], 13)
    neighbour = rng.integers(0, n, len(query))
    weight = rng.random(len(query)) if "weights" in kind else None
    if "classes" in kind:
        return Pairs(query, neighbour, 2 * labels[query] + (labels[query] == labels[neighbour]), 6, weight, True)
    if "coupled" in kind:
        return Pairs(query, neighbour, np.zeros(len(query), np.int64), 2, weight, True)
    return Pairs(query, neighbour, rng.integers(0, 4, len(query)), 5, weight, False)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", [0, 5, 6])
@pytest.mark.parametrize("kind", ["classes", "coupled, weights", "kinds", "kinds, weights"])
def test_the_sums_are_those_of_the_cpu(seed, device, kind, monkeypatch):
    X, discrete, labels = table(seed)
    monkeypatch.setattr("belief.kernels.gpu.sums.WORDS", 100 * X.shape[1])
    rng = np.random.default_rng(seed)
    pairs = [pairs_for(kind, rng, len(X), labels.astype(np.int64)) for _ in range(2)]
    some = np.sort(rng.permutation(X.shape[1])[: X.shape[1] // 2 + 1])
    found = []
    for name in ("cpu", device):
        with engine_of(X, labels, discrete, name) as engine:
            d = Difference.from_summary(engine.describe(), discrete, "standard")
            tallies = [*engine.tally(pairs, d, Collisions(0.8, "hit")), *engine.tally(pairs[:1], d, None)]
            asked = [(pairs[0], some[:2]), (pairs[1], some[-1:]), (pairs[0], some[:0])]
            joints = [x for by in ("hit", "rate") for x in engine.joint(d, Collisions(0.8, by), asked, some)]
            floors = engine.joint_floor(d, Collisions(0.8, "hit"), asked, some)
            found.append((tallies, joints, floors))
    for cpu, mine in zip(found[0][0] + found[0][1], found[1][0] + found[1][1], strict=True):
        for name, x in vars(cpu).items():
            assert np.shape(vars(mine)[name]) == np.shape(x), name
            np.testing.assert_allclose(vars(mine)[name], x, rtol=1e-11, atol=1e-9, err_msg=name)
    for exact_joint, floor in zip(found[0][1][:3], found[1][2], strict=True):
        assert (floor <= exact_joint.joint + 1e-9).all()


def test_many_features_are_measured_as_they_are_asked_for(monkeypatch):
    monkeypatch.setattr(gpu, "TOGETHER", 3)
    test_the_sums_are_those_of_the_cpu(6, "torch-cpu", "classes", monkeypatch)


# --- what the answer rests on ---


def space_of(X, device, **more):
    difference = Difference.from_summary(summary_of(X), np.zeros(X.shape[1], bool), more.pop("scale", "standard"))
    return points.Space.of(difference, torch.device("cpu" if device == "torch-cpu" else device))


def summary_of(X):
    with engine_of(X, np.zeros(len(X), np.int32), np.zeros(X.shape[1], bool), "cpu") as engine:
        return engine.describe()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1e-100, 1e-9, 1.0, 1e4, 1e100])
def test_the_bounds_hold(size, device):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 50)) * np.exp(rng.normal(size=50) * 3) * size  # fp16 subnormals and overflow among them
    X[0, 0] = 1e6 * size
    space = space_of(X, device, scale="none")
    values = torch.tensor(X, device=space.mean.device)
    p = points.embed(values, torch.arange(300, device=values.device), space)
    acc = scan.product(p.point, p.point).double()
    i, j = (x.reshape(-1) for x in torch.meshgrid(torch.arange(300), torch.arange(300), indexing="ij"))
    half = exact.distances(values[i], values[j], space).reshape(300, 300) / 2 / space.scale**2
    assert (p.low[:, None] + p.low - acc <= half).all()
    assert (p.high[:, None] + p.high - acc >= half).all()


def test_keys_and_rounding():
    ids = torch.tensor([0, 1, 2, 12345678901, 2**40])
    start = naive.mix(naive.mix(7) ^ 1)
    assert [int(x) + 2**63 for x in exact.keys(start, ids)] == [naive.mix(start ^ int(i)) for i in ids]
    x = [0.0, 1.0, 0.1 + 0.2, 123456789.4, 9999999995.0, 1e-300, 2 / 3]
    got = exact.round9(torch.tensor([*x, torch.inf], dtype=torch.float64)).tolist()
    np.testing.assert_allclose(got[:-1], [float(f"{v:.8e}") for v in x], rtol=1e-15)
    assert got[-1] == np.inf


@pytest.mark.parametrize("device", DEVICES)
def test_copies_of_rows_fill_no_list_for_long(device, monkeypatch):
    """64 different rows, so every threshold is a tie of many: surplus copies are left out, and none that is wanted."""
    rng = np.random.default_rng(0)
    X, labels = rng.integers(0, 2, (900, 6)).astype(float), (np.arange(900) % 2).astype(np.int32)
    X[:700] = X[0]
    rooms, plain = [], search.scan
    monkeypatch.setattr(search, "scan", lambda q, c, tau, room: rooms.append(room) or plain(q, c, tau, room))
    monkeypatch.setattr(gpu, "START", 900)
    monkeypatch.setattr(gpu, "MOST", 900)
    rows = np.arange(0, 900, 23)
    sample, asked = Sample(rows.astype(np.uint64), rows, labels[rows]), Search(5, 2, 3)
    found = []
    for name in ("cpu", device):
        with engine_of(X, labels, np.zeros(6, bool), name) as engine:
            found.append(
                engine.nearest(sample, Difference.from_summary(engine.describe(), np.zeros(6, bool), "none"), asked)
            )
    np.testing.assert_array_equal(found[1].row, found[0].row)
    assert rooms[0] == 32
    assert max(rooms) < 350  # a list of a class would have needed room for all copies in it


# --- memory ---


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_without_memory_gets_smaller_chunks(device, monkeypatch):
    X, _, labels = table(0)
    heights, plain = [], gpu.meet

    def meet(queries, chunk, best, space):
        heights.append(sum(chunk.size))
        if heights[-1] > 40:
            raise torch.OutOfMemoryError
        return plain(queries, chunk, best, space)

    monkeypatch.setattr(gpu, "meet", meet)
    monkeypatch.setattr(gpu, "LEAST", 8)
    test_the_neighbours_are_those_of_the_cpu(0, device, np.float64)
    assert max(heights) > 40 >= heights[-1]
    monkeypatch.setattr(gpu, "LEAST", 60)
    with pytest.raises(ValueError, match=r"^device='c.*' has not the memory for the queries and .* device='cpu'\.$"):
        belief.select(X, labels, 2, device=device, n_neighbors=2)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_that_do_not_fit_come_in_spans_while_others_are_used(device, monkeypatch):
    X, discrete, labels = table(6)
    monkeypatch.setattr(stored, "PIECE", 1000)
    monkeypatch.setattr(stored, "HELD", 0.0)
    monkeypatch.setattr(gpu, "LEAST", 50)
    taken, plain = [], stored.Stored.spans
    monkeypatch.setattr(
        stored.Stored, "spans", lambda self, *how: (taken.append(len(x.values)) or x for x in plain(self, *how))
    )
    how = {"discrete_features": discrete, "n_neighbors": 5, "sample_size": 60, "random_state": 1}
    cpu, mine = (belief.select(X, labels, 3, device=name, working_memory=16, **how) for name in ("cpu", device))
    if device == "cuda":
        assert len(taken) > 3
    np.testing.assert_allclose(mine.weights, cpu.weights, rtol=1e-9, atol=1e-12)
    with engine_of(X, labels, discrete, device, working_memory=2**10) as engine:
        parts = list(engine.stored.spans(7, 100))
        assert [x.first for x in parts] == list(range(7, len(X), 100))
        np.testing.assert_array_equal(np.concatenate([x.values.cpu().numpy() for x in parts]), X[7:])


@pytest.mark.parametrize("device", DEVICES)
def test_rows_that_are_on_the_device_already_are_described_there(device):
    X, discrete, labels = table(6)
    half = np.nan_to_num(X).astype(np.float16)
    half[3, 1] = np.nan
    name = "cpu" if device == "torch-cpu" else device
    found = []
    for engine in (
        dense.DenseEngine(ArraySource(half), labels, discrete, Resources()),
        gpu.GpuEngine(stored.TensorSource(torch.tensor(half, device=name)), labels, discrete, Resources(), device=name),
    ):
        with engine:
            summary = engine.describe()
            rows = np.arange(0, len(X), 5)
            sample = Sample(rows.astype(np.uint64), rows, labels[rows])
            d = Difference.from_summary(summary, discrete, "standard")
            found.append((summary, engine.nearest(sample, d, Search(4, 3, 0)), engine.rows(rows, np.array([0, 1]))))
    (cpu, near, some), (mine, found_near, found_some) = found
    for name in ("count", "mean", "m2", "minimum", "maximum", "nonzero", "between"):
        np.testing.assert_allclose(getattr(mine, name), getattr(cpu, name), rtol=1e-12, atol=1e-12, err_msg=name)
    np.testing.assert_array_equal(mine.levels.value, cpu.levels.value)
    np.testing.assert_array_equal(mine.levels.count, cpu.levels.count)
    np.testing.assert_array_equal(mine.levels.groups, cpu.levels.groups)
    np.testing.assert_array_equal(mine.group_count, cpu.group_count)
    np.testing.assert_allclose(univariate_p_values(mine), univariate_p_values(cpu), rtol=1e-9)
    np.testing.assert_array_equal(found_near.row, near.row)
    np.testing.assert_array_equal(found_some, some)


# --- which device, and what is said ---


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda 1", 0, None, "mps"])
def test_what_is_no_device_is_refused(name):
    with pytest.raises(ValueError, match=r"^device must be 'auto', 'cpu', 'cuda', .* got "):
        belief.select(np.eye(4), [0, 1, 0, 1], 1, device=name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", ["cuda", "cuda:1", "cuda:0,1"])
def test_without_a_gpu_it_is_said_that_one_is_needed(name):
    with pytest.raises(ValueError, match=rf"^device='{name}' needs an NVIDIA GPU, but torch .* Or use 'cpu'\.$"):
        belief.select(np.eye(4), [0, 1, 0, 1], 1, device=name)


def test_a_gpu_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices_for("cuda", 0) == ["cuda:0"]
    assert devices_for("cuda:1,0", 0) == ["cuda:1", "cuda:0"]
    with pytest.raises(ValueError, match=r"^device='cuda:0,2': there is no cuda:2; torch sees 2 GPUs"):
        devices_for("cuda:0,2", 0)


def test_without_torch_the_line_that_installs_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"^A GPU needs torch, .*: .*install .*\[gpu\]'\.$"):
        belief.select(np.eye(4), [0, 1, 0, 1], 1, device="cuda")


def test_auto_takes_a_gpu_where_the_work_is_worth_it(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert devices_for("auto", WORTH) == ["cuda:0"]
    assert devices_for("auto", 0.99 * WORTH) == []
    assert Resources(device="auto").devices(10**6, 2_500) == ["cuda:0"]  # 2,000 queries
    assert Resources(device="auto", queries=lambda m: 100).devices(10**6, 2_500) == []
    assert Resources(device="auto").decided(10**6, 2_500).device == "cuda:0"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert devices_for("auto", WORTH) == []


def test_small_work_does_not_import_torch():
    code = "import sys, belief, numpy as np; belief.select(np.eye(40), [0, 1] * 20, 1, n_neighbors=2); "
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_variable_names_the_device_where_nobody_else_does(monkeypatch):
    monkeypatch.setattr("belief.engines.block.threads.SMALL", 0)
    X, discrete, labels = table(0)
    assert type(block_engine(X, labels, discrete, Resources())).__name__ == "DenseEngine"
    monkeypatch.setenv("BELIEF_DEVICE", "torch-cpu")
    assert type(block_engine(X, labels, discrete, Resources())).__name__ == "GpuEngine"
    assert type(block_engine(X, labels, discrete, Resources(device="cpu"))).__name__ == "DenseEngine"


def test_sparse_rows_stay_on_the_cpu_with_a_word_about_it():
    rng = np.random.default_rng(0)
    X, y = csr_array(rng.random((60, 5)) * (rng.random((60, 5)) < 0.3)), rng.integers(0, 2, 60)
    how = {"n_neighbors": 3, "random_state": 0}
    with pytest.warns(UserWarning, match="^device='torch-cpu' is for dense rows: sparse ones are searched on the CPU"):
        mine = belief.select(X, y, 2, device="torch-cpu", **how)
    assert mine.selected.tolist() == belief.select(X, y, 2, device="cpu", **how).selected.tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("quota", [[40], [30, 20, 5], [10**6]])
def test_the_sample_is_that_of_the_cpu(device, quota):
    X, discrete, labels = table(1)
    found = []
    for name in ("cpu", device):
        with engine_of(X, labels, discrete, name) as engine:
            found.append(engine.sample(np.array(quota), 7))
    for name in ("key", "row", "target"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))


POOL = """
import json, sys
import numpy as np
from pool_cluster import pool, pool_engine
from random_tables import table
from belief.method.algorithm import belief
from belief.method.settings import Settings

def loaded(_):
    return "torch" in sys.modules

if __name__ == "__main__":
    X, discrete, labels = table(1)
    with pool_engine(X, labels, discrete) as engine:
        chosen = Settings(n_features_to_select=4, n_neighbors=5, sample_size=60, random_state=0)
        got = belief(engine, chosen, lambda *described: None, lambda *told: None)
    torch_there = any(pool().map(loaded, [(i,) for i in range(8)]))
    print(json.dumps([got.selection.selected.tolist(), got.w.tolist(), torch_there]))
"""


def test_the_tasks_of_a_cluster_use_the_device_that_the_variable_names(tmp_path):
    (tmp_path / "on_a_pool.py").write_text(POOL)
    found = []
    for device in ("cpu", "torch-cpu"):
        paths = [str(tmp_path), str(Path(__file__).parent), *sys.path]
        variables = {**os.environ, "BELIEF_DEVICE": device, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-W", "ignore", str(tmp_path / "on_a_pool.py")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=variables)
        found.append(json.loads(done.stdout))
    (chosen, w, before), (same, mine, loaded) = found
    assert same == chosen
    np.testing.assert_allclose(mine, w, rtol=1e-9, atol=1e-12)
    assert not before
    assert loaded  # or the workers would not have used it
