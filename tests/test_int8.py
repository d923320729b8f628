"""The searches over rows rounded to int8 and int16 return the same neighbours as the search in float32."""

import re
import time

import llvmlite.binding as llvm
import numpy as np
import pytest
from conftest import Blocks, in_blocks, in_columns, in_memory
from effort import THOROUGH, examples
from llvmlite import ir
from random_tables import table
from scipy.sparse import csr_array

from belief.engines.block import block_engine, local_engine
from belief.engines.block.rounded_sparse import SparseRoundedSearch
from belief.engines.block.words import HEIGHT
from belief.engines.resources import Resources
from belief.engines.stream import StreamEngine
from belief.kernels import instructions
from belief.kernels.instructions import (
    ArmDot,
    Avx2,
    Avx512Vnni,
    Avx512Words,
    AvxVnni,
    AvxWords,
    available_instructions,
    word_instructions,
)
from belief.kernels.rounded import ERROR, RoundedQueries, RoundedRows, collect, compare, round_queries, round_rows
from belief.kernels.words import RUN, error_of_products, multiply_words, pack_words, round_words
from belief.method.difference import Difference
from belief.method.partials import Neighbours
from belief.method.protocols import Search, Visit

NAMES = [type(x).__name__ for x in available_instructions()]
if not NAMES:
    pytest.skip("this CPU has no int8 instructions", allow_module_level=True)


def neighbours(X, discrete, labels, how, sample_size=None, size=7, source=in_memory, **options):
    resources = Resources(instructions=how, small_rows=0, **options)
    with local_engine(source(X), np.arange(3), labels, discrete, resources) as engine:
        return search(engine, sample_size or len(X), size)


def search(engine, sample_size, size):
    difference = Difference.from_summary(engine.describe(), engine.discrete, "standard")
    sample = engine.sample(np.array([sample_size]), 3)
    return engine.nearest(sample, difference, Search(size, 3, 3))


def same(found, reference):
    np.testing.assert_array_equal(found.row, reference.row)
    np.testing.assert_array_equal(found.d2, reference.d2)
    np.testing.assert_array_equal(found.key, reference.key)


def check_random_table(seed):
    X, discrete, labels = table(seed)
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        X[:, rng.integers(X.shape[1])] = 7.0  # a constant column
    if seed % 5 == 0:
        X[rng.integers(0, len(X), 9)] = X[0]
    X = X.astype(np.float32) if seed % 2 else X
    size, part = int(rng.integers(1, 30)), int(rng.choice([1, len(X) // 3, len(X)]))
    reference = neighbours(X, discrete, labels, "float32", max(part, 1), size)
    name = NAMES[seed % len(NAMES)]
    memory = int(rng.choice([2**14, 2**17, 2**30]))  # small and large tiles
    same(neighbours(X, discrete, labels, name, max(part, 1), size, working_memory=memory), reference)
    same(neighbours(X, discrete, labels, "int16", max(part, 1), size, working_memory=int(2**21 << seed % 9)), reference)


@pytest.mark.parametrize("seed", range(examples(21)))
def test_same_neighbours_as_float32(seed):
    check_random_table(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 3000 if THOROUGH else 100, 100))
def test_same_neighbours_as_float32_on_many_tables(start):
    """The test covers 100 tables, or 3,000 with BELIEF_THOROUGH=1."""
    for seed in range(1000 + start, 1100 + start):
        check_random_table(seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [1, 3, 64, 1500])
def test_any_width(name, width):
    rng = np.random.default_rng(width)
    X, labels = rng.standard_normal((200, width)), rng.integers(0, 3, 200).astype(np.int32)
    discrete = np.zeros(width, bool)
    same(neighbours(X, discrete, labels, name), neighbours(X, discrete, labels, "float32"))


@pytest.mark.parametrize("source", [in_blocks, in_columns])
def test_sources_that_copy_rows(source):
    X, discrete, labels = table(0)
    found = neighbours(X, discrete, labels, NAMES[0], source=source, working_memory=2**16)
    same(found, neighbours(X, discrete, labels, "float32"))


@pytest.mark.parametrize("values", ["outliers", "far from the mean", "constant", "heavy tails", "huge", "tiny"])
def test_rows_that_round_badly(values):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 20))
    if values == "outliers":
        X[rng.integers(0, 600, 30), rng.integers(0, 20, 30)] = 1e6
    elif values == "far from the mean":
        X += 1e7
    elif values == "constant":
        X[:] = 1.0
    elif values == "heavy tails":
        X = rng.standard_t(1, X.shape)
    else:
        X *= {"huge": 1e140, "tiny": 1e-140}[values]
    labels, discrete = rng.integers(0, 3, 600).astype(np.int32), np.zeros(20, bool)
    for scale in ("standard", "none"):
        found = []
        for how in (*NAMES, "int16", "float32"):
            with local_engine(X, np.arange(3), labels, discrete, Resources(instructions=how, small_rows=0)) as engine:
                difference = Difference.from_summary(engine.describe(), discrete, scale)
                found.append(engine.nearest(engine.sample(np.array([600]), 0), difference, Search(5, 3, 0)))
        for x in found[:-1]:
            same(x, found[-1])


class Clock:
    """A clock that counts its readings; the time between readings is constant, or increases by the factor `growth`."""

    def __init__(self, growth):
        self.n_readings, self.growth = 0, growth

    def __call__(self):
        self.n_readings += 1
        return float(self.growth**self.n_readings) if self.growth > 1 else float(self.n_readings)


@pytest.mark.parametrize("sample_size", [400, 4000])
@pytest.mark.parametrize("growth", [1, 4])
@pytest.mark.parametrize("working_memory", [2**23, 2**30])  # too little for products in int16, and enough
def test_the_faster_product_is_used(monkeypatch, growth, sample_size, working_memory):
    """The search measures both products; its neighbours do not depend on which is faster."""
    rng = np.random.default_rng(0)
    centres, labels = 9 * rng.standard_normal((100, 150)), rng.integers(0, 3, 4000).astype(np.int32)
    X, discrete = (centres[rng.integers(0, 100, 4000)] + rng.standard_normal((4000, 150))), np.zeros(150, bool)
    expected = neighbours(X, discrete, labels, "float32", sample_size, 1)
    clock = Clock(growth)
    monkeypatch.setattr(time, "perf_counter", clock)
    same(neighbours(X, discrete, labels, "auto", sample_size, 1, working_memory=working_memory), expected)
    if HAS_WORDS and working_memory == 2**30 and sample_size == 4000:
        assert clock.n_readings == 0  # int16 is used without measuring, as it multiplies each pair of rows once
    else:  # measured: two parts of the first rows in float32, and four rounds in int8, or two if int8 is slower
        assert clock.n_readings == (4 + 2 * 4 if growth == 1 else 4 + 2 * 2)


def test_wide_noise_is_not_compared_in_int8(monkeypatch):
    """In wide rows, rounding errors exceed the differences of distances, so int8 would not exclude any row."""
    rng, clock = np.random.default_rng(0), Clock(1)
    X, labels = rng.standard_normal((1000, 4000), np.float32), rng.integers(0, 3, 1000).astype(np.int32)
    monkeypatch.setattr(time, "perf_counter", clock)
    same(*(neighbours(X, np.zeros(4000, bool), labels, how, 500) for how in ("auto", "float32")))
    assert clock.n_readings == 2  # measured: one part of the first rows in float32


@pytest.mark.slow
def test_blocks_that_bring_neighbours_in_int16():
    """Products in int16 find the same neighbours as products in float32.

    Here, blocks of 800 rows are read one after another. Only 196 rows fit into memory in int16, so each block is
    compared with the queries in several parts.
    """
    rng = np.random.default_rng(0)
    X, labels, found = rng.standard_normal((3000, 70)), rng.integers(0, 3, 3000).astype(np.int32), []
    for how in ("int16", "float32"):
        resources = Resources(working_memory=2**22, instructions=how, small_rows=0)  # 196 rows at a time
        with StreamEngine(Blocks(X, labels, np.zeros(70, bool), 800), "y", resources) as engine:
            found.append(search(engine, 60, 5))
    same(*found)


# --- sparse rows ---


def sparse_table(seed):
    """Return a random table with many zeros, and its labels."""
    rng = np.random.default_rng(seed)
    m, F, density = int(rng.integers(20, 500)), int(rng.integers(1, 60)), rng.choice([0.02, 0.1, 0.4])
    X = np.where(rng.random((m, F)) < density, rng.standard_normal((m, F)) * 10.0 ** rng.integers(-3, 4, F), 0.0)
    if seed % 3 == 0:
        X = np.round(X)  # ties
    if seed % 4 == 0:
        X = X[rng.integers(0, len(X), len(X))]  # copies
    X[rng.random(m) < 0.1] = 0.0
    labels = rng.choice(3, m, p=[0.6, 0.37, 0.03]).astype(np.int32)
    labels[:3] = [0, 1, 2]
    return X, labels


def sparse_neighbours(X, labels, how, sample_size, size, n_blocks=1, scale="standard", **options):
    blocks = [csr_array(x) for x in np.array_split(X, n_blocks)]
    discrete = np.zeros(X.shape[1], bool)
    with local_engine(blocks, np.arange(3), labels, discrete, Resources(instructions=how, **options)) as engine:
        difference = Difference.from_summary(engine.describe(), discrete, scale)
        sample = engine.sample(np.array([sample_size]), 1)
        return engine.nearest(sample, difference, Search(size, 3, 1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(60)))
def test_same_neighbours_of_sparse_rows(seed):
    X, labels = sparse_table(seed)
    rng = np.random.default_rng(seed)
    n_blocks, size, part = int(rng.integers(1, 4)), int(rng.integers(1, 30)), int(rng.integers(1, len(X) + 1))
    memory, scale = int(rng.choice([2**12, 2**30])), str(rng.choice(["standard", "none", "range"]))
    arguments = part, size, n_blocks, scale
    found = sparse_neighbours(X, labels, NAMES[seed % len(NAMES)], *arguments, working_memory=memory)
    same(found, sparse_neighbours(X, labels, "float32", *arguments))


@pytest.mark.slow
def test_blocks_of_sparse_rows_that_bring_neighbours():
    X, labels = sparse_table(5)
    discrete, settings = np.zeros(X.shape[1], bool), Search(4, 3, 1)
    with local_engine(csr_array(X), np.arange(3), labels, discrete, Resources(instructions="float32")) as whole:
        difference = Difference.from_summary(whole.describe(), discrete, "standard")
        sample = whole.sample(np.array([30]), 1)
        reference = whole.nearest(sample, difference, settings)
    found, half = Neighbours.zero(30, 3, 4), len(X) // 2
    for part in (slice(0, half), slice(half, len(X))):
        resources = Resources(instructions=NAMES[0])
        with block_engine(csr_array(X[part]), labels[part], discrete, resources, None) as block:
            visit = Visit(csr_array(X[sample.row]), part.start, found)
            found = block.nearest(sample, difference, settings, visit)
    same(found, reference)
    np.testing.assert_array_equal(found.target, reference.target)


@pytest.mark.parametrize(
    ("first", "size"),
    [
        (1, 5),  # few candidates: all rows in int8
        (100, 5),  # the first rows are far away, so many later rows are candidates, and the index may be faster
        (1, 15),  # many candidates
    ],
)
def test_int8_or_the_index_of_sparse_rows(monkeypatch, first, size):
    rng, done, run = np.random.default_rng(0), [], SparseRoundedSearch.run
    monkeypatch.setattr(SparseRoundedSearch, "run", lambda self, *rows: done.append(run(self, *rows)) or done[-1])
    X = np.where(rng.random((4000, 1000)) < 0.05, rng.standard_normal((4000, 1000)), 0.0)
    X[:256] *= first
    labels = rng.integers(0, 3, 4000).astype(np.int32)
    same(*(sparse_neighbours(X, labels, how, 1500, size, scale="none") for how in ("auto", "float32")))
    assert len(done) == 1
    assert (done[0] == 4000) == (first == 1 and size == 5)  # otherwise, the other rows are compared by the index


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("how", ["float32", "int8"])
@pytest.mark.parametrize("n", [9, 40])  # up to half of the columns are copied out of the rows
def test_a_search_by_some_columns_equals_that_of_a_matrix_without_the_others(how, blocks, n):
    rng = np.random.default_rng(5)
    X = np.where(rng.random((900, 60)) < 0.3, rng.integers(-3, 9, (900, 60)), 0.0)
    labels, some = rng.integers(0, 3, 900).astype(np.int32), np.sort(rng.choice(60, n, replace=False))
    parts, found = [csr_array(x) for x in np.array_split(X, blocks)], []
    settings = Search(6, 3, 3)
    for memory in (2**30, 2**12):
        resources = Resources(2, working_memory=memory, instructions=how)
        with local_engine(parts, np.arange(3), labels, np.zeros(60, bool), resources) as engine:
            whole = Difference.from_summary(engine.describe(), engine.discrete, "standard")
            found.append(engine.nearest(engine.sample(np.array([400]), 3), whole.restrict(some), settings))
    with local_engine([x[:, some] for x in parts], np.arange(3), labels, np.zeros(n, bool), resources) as engine:
        narrow = Difference.from_summary(engine.describe(), engine.discrete, "standard")
        reference = engine.nearest(engine.sample(np.array([400]), 3), narrow, settings)
    for x in found:
        same(x, reference)


# --- the kernels ---


def candidates_of(kind, R, Q, limit):
    """Return a mask (len(Q) x len(R)) of the pairs whose lower bound is at most the limit."""
    lanes, steps = kind.lanes, -(-R.shape[1] // 4)
    n_rows = -(-len(R) // (lanes * kind.panels)) * lanes * kind.panels
    packed, terms = np.zeros((n_rows // lanes, steps, lanes), np.uint32), np.zeros((4, n_rows), np.float32)
    row = np.full(n_rows, -1)
    row[: len(R)] = np.arange(len(R))
    norm = (R.astype(float) ** 2).sum(axis=1)
    round_rows(R, norm, np.arange(len(R)), kind.levels, kind.offset, packed, terms)
    n = -(-len(Q) // kind.queries) * kind.queries
    ints, query_terms = np.zeros((n, 4 * steps), np.int8), np.zeros((n, 3), np.float32)
    queries = RoundedQueries(ints, query_terms, np.zeros(n, np.int32), np.zeros(n))
    round_queries(Q, kind.offset, queries.ints, queries.terms, queries.shift)
    limits = np.full((n, 1), -np.inf, np.float32)
    limits[: len(Q), 0] = limit - (Q.astype(float) ** 2).sum(axis=1) * (1 - ERROR)
    candidates = np.zeros((n, len(packed)), np.uint16)
    compare(kind, RoundedRows(packed, terms, np.zeros(len(packed), np.int64), row), queries, limits, 1, candidates)
    q, r = np.zeros((2, n * n_rows + 1), np.int64)
    crowded = np.zeros(len(Q), bool)
    count, _ = collect(candidates, lanes, row, np.arange(len(R)), np.full(len(Q), -1), len(R), 0, q, r, crowded)
    out = np.zeros((len(Q), len(R)), bool)
    out[q[:count], r[:count]] = True
    return out


@pytest.mark.parametrize("kind", available_instructions(), ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("draw", ["standard_normal", "standard_cauchy", "standard_exponential"])
@pytest.mark.parametrize("width", [1, 5, 130, 3000])
def test_lower_bounds(kind, draw, width):
    """No row at a distance up to the limit is lost, and few others are candidates."""
    rng = np.random.default_rng(width)
    R, Q = (getattr(rng, draw)((n, width)).astype(np.float32) for n in (150, 20))
    Q[:3] = R[:3]
    d2 = ((Q.astype(float)[:, None] - R.astype(float)) ** 2).sum(axis=2)
    limit = float(np.quantile(d2, 0.1))
    candidates = candidates_of(kind, R, Q, limit)
    assert candidates[d2 <= limit].all()
    if draw == "standard_normal":
        assert not candidates[d2 > 1.5 * limit].any()


def test_largest_products():
    """The largest integers neither saturate nor overflow."""
    for kind in available_instructions():
        R = np.ones((40, 200_001), np.float32)
        R[1::2] = -1
        candidates = candidates_of(kind, R, R[:9].copy(), 1e-3 * 200_001)
        assert np.array_equal(candidates, (R @ R[:9].T > 0).T)


def round_to_words(kind, X):
    """Return X rounded to int16, in the forms that `multiply_words` needs, and the largest relative rounding error.

    The columns of each row are cut into runs of `RUN` columns. Each run has its own scale. The error
    is the largest one of all runs, relative to the norm of the run.
    """
    n, steps = -(-len(X) // HEIGHT) * HEIGHT, -(-X.shape[1] // 2)
    ints, scale = np.zeros((n, 2 * steps), np.int16), np.zeros((-(-X.shape[1] // RUN), n), np.float32)
    rho = round_words(X, 0, ints, scale)
    packed = np.zeros((n // kind.lanes, steps, kind.lanes), np.int32)
    pack_words(ints.view(np.int32), 0, len(X), steps, packed)
    return ints, packed, scale, rho


WORDS = [kind for kind in (word_instructions([x]) for x in available_instructions()) if kind]
HAS_WORDS = bool(WORDS)


@pytest.mark.parametrize("kind", WORDS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("values", ["normal", "cauchy", "one column", "huge and tiny", "signs"])
@pytest.mark.parametrize("width", [1, 2, 255, 257, 1500])
def test_error_of_products_in_int16(kind, values, width):
    """The errors of products are within a small bound, and the largest integers do not overflow."""
    rng = np.random.default_rng(width)
    X = rng.standard_normal((70, width))
    if values == "cauchy":
        X = rng.standard_cauchy((70, width))
    elif values == "one column":
        X[:, 1:] = 0.0
    elif values == "huge and tiny":
        X *= 10.0 ** rng.integers(-12, 12, (70, 1))
        X[::7] = 0.0
    elif values == "signs":
        X = np.sign(X[:1]) * np.ones((70, 1))
    X = X.astype(np.float32)
    Q, out = X[::-1][:50].copy(), np.full((50, 70), np.nan, np.float32)
    _, packed, scale, rho = round_to_words(kind, X)
    of_queries = round_to_words(kind, Q)
    multiply_words(kind, of_queries[0], packed, of_queries[2], scale, width, (0, 50), (0, 70), True, out)
    x, q = X.astype(float), Q.astype(float)
    error = error_of_products(max(rho, of_queries[3]), len(scale))
    assert error < 6e-4
    assert (np.abs(out - q @ x.T) <= 0.5 * error * ((q**2).sum(axis=1)[:, None] + (x**2).sum(axis=1))).all()


# --- the instructions ---

CPUS = {
    Avx512Vnni: ("x86_64-unknown-linux-gnu", "+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512vnni", r"vpdpbusd\s.*zmm"),
    AvxVnni: ("x86_64-unknown-linux-gnu", "+avx2,+fma,+avxvnni", r"vpdpbusd\s.*ymm"),
    Avx2: ("x86_64-unknown-linux-gnu", "+avx2,+fma", r"vpmaddubsw\s.*ymm"),
    ArmDot: ("aarch64-unknown-linux-gnu", "+neon,+dotprod", r"sdot\s+v\d+\.4s, v\d+\.16b"),
}


CPUS_WITH_WORDS = {  # LLVM may replace vpdpwssd by vpmaddwd and a sum, which some CPUs run as fast
    Avx512Words: (*CPUS[Avx512Vnni][:2], r"(vpdpwssd|vpmaddwd)\s.*zmm"),
    AvxWords: (*CPUS[AvxVnni][:2], r"(vpdpwssd|vpmaddwd)\s.*ymm"),
}


def assembly(kind, triple, features):
    """Return the machine code of `block_candidates` for a CPU, or of `block_products` for 16-bit products."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module, i64 = ir.Module(), ir.IntType(64)
    module.triple = triple
    emit, n = (instructions.emit_block_candidates, 14) if type(kind) in CPUS else (instructions.emit_block_products, 7)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [i64] * n), "block")
    builder = ir.IRBuilder(function.append_basic_block())
    emit(kind, builder, *function.args)
    builder.ret_void()
    machine = llvm.Target.from_triple(triple).create_target_machine(features=features, opt=3)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    return machine.emit_assembly(parsed)


@pytest.mark.parametrize("kind", CPUS | CPUS_WITH_WORDS, ids=lambda x: x.__name__)
def test_machine_code(kind):
    """Each product is one instruction of the CPU, and the sums stay in registers."""
    triple, features, pattern = (CPUS | CPUS_WITH_WORDS)[kind]
    code = assembly(kind(), triple, features)
    products = [x for x in code.splitlines() if re.search(pattern, x)]
    n = kind()
    assert len(products) == n.queries * n.panels
    loop = _loop_around(code, products[0])
    spills = r"\(%rsp\)|\(%rbp\)|\[sp[,\]]"
    vectors = [x for x in loop if re.search(r"[xyz]mm|\bv\d|\bq\d", x)]
    assert not [x for x in vectors if re.search(spills, x)]
    found = instructions.matching_instructions(features)
    assert type(found[0] if kind in CPUS else word_instructions(found)) is kind


def _loop_around(code, line):
    """Return the lines of the basic block that contains this line."""
    lines = code.splitlines()
    at = lines.index(line)
    start = max(i for i in range(at) if lines[i].rstrip().endswith(":") or ":  " in lines[i])
    stop = next(i for i in range(at, len(lines)) if re.match(r"\s+(j\w+|b\.\w+|cb\w+)\s", lines[i]))
    return lines[start:stop]


def test_cpus_without_int8_instructions():
    assert instructions.matching_instructions("+sse4.2,-avx2") == []
    assert instructions.matching_instructions("") == []
    assert word_instructions(instructions.matching_instructions("+avx2,+fma")) is None
