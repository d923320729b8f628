"""The GPU engine gives the results of the CPU engine: on torch's CPU device, and on a GPU if there is one.

The conformance suite and the oracle tests run on it, too: see `make_engine` in conftest.py and test_engines.py.
"""

import json
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import naive
import numpy as np
import pytest
import torch
from random_tables import table
from scipy.sparse import csr_array

import belief
from belief._utils.optional import MissingExtraError
from belief.data.source import ArraySource
from belief.engines.block import block_engine, dense, gpu, local_engine, stored
from belief.engines.resources import MIN_GPU_MULTIPLICATIONS, Resources, choose_devices
from belief.kernels.gpu import points, ranking, scan, search
from belief.method.algorithm import belief as run_belief
from belief.method.difference import Difference
from belief.method.protocols import Search
from belief.method.sampling import Sample
from belief.method.settings import Settings
from belief.method.univariate import univariate_p_values

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
DEVICES = ["torch on the CPU"] + (["cuda"] if torch.cuda.is_available() else [])


def torch_device(device):
    return "cuda:0" if device == "cuda" else "cpu"


def resources_for(device, **options):
    """Return resources for the CPU engine ("cpu") or for torch on one of the DEVICES."""
    return Resources(torch_devices=() if device == "cpu" else (torch_device(device),), **options)


def engine_of(X, labels, discrete, device, **options):
    return as_small(block_engine(ArraySource(X), labels, discrete, resources_for(device, **options)))


def as_small(engine):
    """Make small tables take the code path of large ones: several chunks, several parts, lists that overflow."""
    engine.first_chunk, engine.max_chunk = 64, 200
    engine.compare = partial(search.compare, capacity=32, queries_at_once=70)
    return engine


def fit(X, labels, discrete, device, working_memory=2**30, limits=(), **settings):
    """Run the whole method on a device; `limits` are attributes to set on the engine."""
    resources = resources_for(device, working_memory=working_memory)
    engine = as_small(local_engine(ArraySource(X), np.arange(labels.max() + 1), labels, discrete, resources))
    vars(engine).update(limits)
    with warnings.catch_warnings(), engine:
        warnings.simplefilter("ignore", UserWarning)  # the rare class has few rows
        found = run_belief(engine, Settings(**settings), lambda *described: None, lambda *progress: None)
        return SimpleNamespace(**found)


# --- same results as on the CPU ---


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(21))
def test_fit_equals_cpu(seed, device):
    X, discrete, labels = table(seed)
    X = X.astype(np.float32 if seed % 2 else np.float64)
    settings = {"n_features_to_select": max(1, X.shape[1] // 2), "n_neighbors": 7, "sample_size": 100}
    settings |= {"random_state": seed, "redundancy": ["agreement", "mcr", None][seed % 3]}
    settings["limits"] = {"columns_at_once": 3} if seed % 4 == 0 else {}
    check_fit(X, labels, discrete, device, settings)


def check_fit(X, labels, discrete, device, settings, **limits):
    cpu = fit(X, labels, discrete, "cpu", **settings)
    mine = fit(X, labels, discrete, device, **settings | limits)
    np.testing.assert_allclose(mine.weights, cpu.weights, rtol=1e-9, atol=1e-12)
    assert mine.selected.tolist() == cpu.selected.tolist()
    np.testing.assert_allclose(mine.scores, cpu.scores, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("m", "n_features"), [(600, 6000), (20_000, 6)])
def test_fit_of_large_tables_equals_cpu(m, n_features, device):
    """In the wide table, the pairs are summed in several parts.

    In the tall table, the classes have more than 4,096 rows. The search excludes rows by thresholds, and computes the
    first thresholds from only 4,096 rows of each class.
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, m).astype(np.int32)
    X = rng.normal(size=(m, n_features)).astype(np.float32) + labels[:, None] * np.linspace(1, 0, n_features)
    settings = {"n_features_to_select": 3, "n_neighbors": 10, "sample_size": 300, "random_state": 0}
    limits = {"first_chunk": 2**14, "max_chunk": 2**20}
    check_fit(X, labels, np.zeros(n_features, bool), device, settings | {"significance": None}, limits=limits)


# --- bounds, keys and copies ---


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1e-100, 1e-9, 1.0, 1e4, 1e100])
def test_point_bounds_hold(size, device):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 50)) * np.exp(rng.normal(size=50) * 3) * size  # includes fp16 subnormals and overflow
    X[0, 0] = 1e6 * size
    none = np.zeros(50, bool)
    with engine_of(X, np.zeros(len(X), np.int32), none, "cpu") as engine:
        difference = Difference.from_summary(engine.describe(), none, "none")
    space = points.Space.from_difference(difference, torch.device(torch_device(device)))
    values = torch.tensor(X, device=space.mean.device)
    p = points.embed(values, torch.arange(300, device=values.device), space)
    acc = scan.product(p.point, p.point).double()
    i, j = (x.reshape(-1) for x in torch.meshgrid(torch.arange(300), torch.arange(300), indexing="ij"))
    half = ranking.distances(values[i], values[j], space).reshape(300, 300) / 2 / space.scale**2
    assert (p.low[:, None] + p.low - acc <= half).all()
    assert (p.high[:, None] + p.high - acc >= half).all()


def test_tie_keys_and_round9():
    ids = torch.tensor([0, 1, 2, 12345678901, 2**40])
    start = naive.mix(naive.mix(7) ^ 1)
    assert [int(x) + 2**63 for x in ranking.tie_keys(start, ids)] == [naive.mix(start ^ int(i)) for i in ids]
    x = [0.0, 1.0, 0.1 + 0.2, 123456789.4, 9999999995.0, 1e-300, 2 / 3]
    got = ranking.round9(torch.tensor([*x, torch.inf], dtype=torch.float64)).tolist()
    np.testing.assert_allclose(got[:-1], [float(f"{v:.8e}") for v in x], rtol=1e-15)
    assert got[-1] == np.inf


@pytest.mark.parametrize("device", DEVICES)
def test_surplus_copies_do_not_fill_the_lists(device, monkeypatch):
    """With 64 different rows, many copies tie at each threshold; surplus copies are dropped, but no neighbours."""
    rng = np.random.default_rng(0)
    X, labels = rng.integers(0, 2, (900, 6)).astype(float), (np.arange(900) % 2).astype(np.int32)
    X[:700] = X[0]
    capacities, plain = [], search.scan
    monkeypatch.setattr(search, "scan", lambda q, c, tau, n: capacities.append(n) or plain(q, c, tau, n))
    rows, none = np.arange(0, 900, 23), np.zeros(6, bool)
    sample, asked = Sample(rows.astype(np.uint64), rows, labels[rows]), Search(5, 2, 3)
    found = []
    for name in ("cpu", device):
        with engine_of(X, labels, none, name) as engine:
            engine.first_chunk = engine.max_chunk = 900
            difference = Difference.from_summary(engine.describe(), none, "none")
            found.append(engine.nearest(sample, difference, asked))
    np.testing.assert_array_equal(found[1].row, found[0].row)
    assert capacities[0] == 32
    assert max(capacities) < 350  # the number of copies in a class


# --- memory ---


@pytest.mark.parametrize("device", DEVICES)
def test_out_of_memory_halves_the_chunks(device):
    X, discrete, labels = table(0)
    heights = []

    def compare(queries, chunk, best, space):
        heights.append(sum(chunk.size))
        if heights[-1] > 40:
            raise torch.OutOfMemoryError
        return search.compare(queries, chunk, best, space)

    settings = {"n_features_to_select": 2, "n_neighbors": 7, "sample_size": 100, "random_state": 0}
    check_fit(X, labels, discrete, device, settings, limits={"compare": compare, "min_chunk": 8})
    assert max(heights) > 40 >= heights[-1]
    with pytest.raises(ValueError, match=r"^device='c.*' ran out of memory with .* rows .* use device='cpu'\.$"):
        fit(X, labels, discrete, device, limits={"compare": compare, "min_chunk": 60}, **settings)


@pytest.mark.parametrize("device", DEVICES)
def test_stored_spans_of_rows_that_do_not_fit(device):
    X, discrete, labels = table(6)
    rows, sizes = np.arange(0, len(X), 11), []
    sample, found = Sample(rows.astype(np.uint64), rows, labels[rows]), []

    def compare(queries, chunk, best, space):
        sizes.append(sum(chunk.size))
        return search.compare(queries, chunk, best, space)

    for name in ("cpu", device):
        with engine_of(X, labels, discrete, name) as engine:
            engine.compare, engine.min_chunk = compare, 50
            if name == device:
                engine.stored.memory, engine.stored.copy_bytes = 2**10, 1000
            difference = Difference.from_summary(engine.describe(), discrete, "standard")
            found.append(engine.nearest(sample, difference, Search(5, 3, 1)))
            if name == device:
                assert engine.stored.whole() is None
    np.testing.assert_array_equal(found[1].row, found[0].row)
    assert len(sizes) > 3
    with engine_of(X, labels, discrete, device) as engine:
        engine.stored.memory, engine.stored.copy_bytes = 2**10, 1000
        parts = list(engine.stored.spans(7, 100))
        assert [x.first for x in parts] == list(range(7, len(X), 100))
        np.testing.assert_array_equal(np.concatenate([x.values.cpu().numpy() for x in parts]), X[7:])


@pytest.mark.parametrize("device", DEVICES)
def test_describe_and_nearest_of_a_tensor_source(device):
    X, discrete, labels = table(6)
    half = np.nan_to_num(X).astype(np.float16)
    half[3, 1] = np.nan
    name = torch_device(device)
    tensor = stored.TensorSource(torch.tensor(half, device=name))
    found = []
    for engine in (
        dense.DenseEngine(ArraySource(half), labels, discrete, Resources()),
        gpu.GpuEngine(tensor, labels, discrete, Resources(), device=name),
    ):
        with engine:
            summary = engine.describe()
            rows = np.arange(0, len(X), 5)
            sample = Sample(rows.astype(np.uint64), rows, labels[rows])
            d = Difference.from_summary(summary, discrete, "standard")
            found.append((summary, engine.nearest(sample, d, Search(4, 3, 0)), engine.rows(rows, np.array([0, 1]))))
    (cpu, cpu_found, cpu_rows), (mine, my_found, my_rows) = found
    for field in ("count", "mean", "m2", "minimum", "maximum", "nonzero", "between"):
        np.testing.assert_allclose(getattr(mine, field), getattr(cpu, field), rtol=1e-12, atol=1e-12, err_msg=field)
    for field in ("value", "count", "groups"):
        np.testing.assert_array_equal(getattr(mine.levels, field), getattr(cpu.levels, field))
    np.testing.assert_array_equal(mine.group_count, cpu.group_count)
    np.testing.assert_allclose(univariate_p_values(mine), univariate_p_values(cpu), rtol=1e-9)
    np.testing.assert_array_equal(my_found.row, cpu_found.row)
    np.testing.assert_array_equal(my_rows, cpu_rows)


# --- the choice of the device ---


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda 1", 0, None, "mps", "torch-cpu"])
def test_check_device_raises(name):
    with pytest.raises(ValueError, match=r"^device must be 'auto', 'cpu', 'cuda', .* got "):
        belief.select(np.eye(4), [0, 1, 0, 1], 1, device=name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", ["cuda", "cuda:1", "cuda:0,1"])
def test_choose_devices_raises_without_a_gpu(name):
    with pytest.raises(ValueError, match=rf"^device='{name}' needs an NVIDIA GPU, but torch .* use device='cpu'\.$"):
        belief.select(np.eye(4), [0, 1, 0, 1], 1, device=name)


def test_choose_devices_names_a_missing_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_devices("cuda", 0) == ["cuda:0"]
    assert choose_devices("cuda:1,0", 0) == ["cuda:1", "cuda:0"]
    with pytest.raises(ValueError, match=r"^device='cuda:0,2': cuda:2 does not exist; torch finds 2 GPUs"):
        choose_devices("cuda:0,2", 0)


def test_cuda_without_torch_raises_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="A GPU needs torch, which is not installed: pip install"):
        belief.select(np.eye(4), [0, 1, 0, 1], 1, device="cuda")


def test_choose_devices_auto(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_devices("auto", MIN_GPU_MULTIPLICATIONS) == ["cuda:0"]
    assert choose_devices("auto", 0.99 * MIN_GPU_MULTIPLICATIONS) == []
    assert Resources(device="auto").choose_devices(10**6, 2_500) == ["cuda:0"]  # 2,000 queries
    assert Resources(device="auto", n_queries=lambda m: 100).choose_devices(10**6, 2_500) == []
    assert Resources(device="auto").with_device_for(10**6, 2_500).device == "cuda:0"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_devices("auto", MIN_GPU_MULTIPLICATIONS) == []


def test_small_tables_do_not_import_torch():
    code = "import sys, belief, numpy as np; belief.select(np.eye(40), [0, 1] * 20, 1, n_neighbors=2); "
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_belief_device_is_the_default_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert Resources().choose_devices(100, 10) == []
    monkeypatch.setenv("BELIEF_DEVICE", "cuda:0")
    assert Resources().choose_devices(100, 10) == ["cuda:0"]
    assert Resources(device="cpu").choose_devices(100, 10) == []


def test_block_engine_warns_that_sparse_rows_stay_on_the_cpu():
    rng = np.random.default_rng(0)
    X, y = csr_array(rng.random((60, 5)) * (rng.random((60, 5)) < 0.3)), rng.integers(0, 2, 60)
    settings = {"n_neighbors": 3, "random_state": 0}
    with pytest.warns(UserWarning, match="^device='cuda' is ignored for sparse data, which is searched on the CPU"):
        mine = belief.select(X, y, 2, device="cuda", **settings)
    assert mine.selected.tolist() == belief.select(X, y, 2, device="cpu", **settings).selected.tolist()


POOL = """
import json
from pool_cluster import pool_engine
from random_tables import table
from belief.method.algorithm import belief
from belief.method.settings import Settings

if __name__ == "__main__":
    X, discrete, labels = table(1)
    with pool_engine(X, labels, discrete) as engine:
        chosen = Settings(n_features_to_select=4, n_neighbors=5, sample_size=60, random_state=0)
        got = belief(engine, chosen, lambda *described: None, lambda *progress: None)
    print(json.dumps([got["selected"].tolist(), got["weights"].tolist()]))
"""


def test_cluster_tasks_use_belief_device(tmp_path):
    (tmp_path / "on_a_pool.py").write_text(POOL)
    found = []
    for device in ("cpu", "cuda"):
        paths = [str(tmp_path), str(Path(__file__).parent), *sys.path]
        variables = {**os.environ, "BELIEF_DEVICE": device, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-W", "ignore", str(tmp_path / "on_a_pool.py")]
        found.append(subprocess.run(command, capture_output=True, text=True, check=False, env=variables))
    on_cpu, on_gpu = found
    assert on_cpu.returncode == 0
    if not torch.cuda.is_available():  # the tasks fail, because they try to use a GPU
        assert "device='cuda' needs an NVIDIA GPU" in on_gpu.stderr
        return
    (selected, w), (mine, my_w) = (json.loads(done.stdout) for done in found)
    assert mine == selected
    np.testing.assert_allclose(my_w, w, rtol=1e-9, atol=1e-12)
