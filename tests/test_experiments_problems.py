"""Generated problems: the rows are the same as for the published figures, whatever the size of blocks."""

from hashlib import blake2b

import numpy as np
import pytest
from problems import (
    corral100,
    ecbdl14_like,
    epsilon_like,
    kddb_like,
    led,
    madelon,
    parity3plus3,
    sd,
    single_cells,
    url_like,
    xor100,
)
from scipy.sparse import csr_array, vstack

LARGE = {
    "url-like": lambda n, **how: url_like(n, 50_000, **how),
    "kddb-like": lambda n, **how: kddb_like(n, 50_000, **how),
    "epsilon-like": epsilon_like,
    "ECBDL14-like": ecbdl14_like,
    "single cells": lambda n, **how: single_cells(n, 2_000, **how),
}
SMALL = {"Corral-100": corral100, "XOR-100": xor100, "Parity3+3": parity3plus3, "LED-25": led, "SD1": sd}


def joined(blocks):
    return vstack(blocks, format="csr") if isinstance(blocks[0], csr_array) else np.vstack(blocks)


def digest(X, y):
    parts = (X.indptr, X.indices, X.data, y) if isinstance(X, csr_array) else (X, y)
    return blake2b(b"".join(np.ascontiguousarray(x).tobytes() for x in parts), digest_size=8).hexdigest()


DIGESTS = {
    "url-like": "c9c3105db2dd45a6",
    "kddb-like": "3f8aa59526332940",
    "epsilon-like": "584799852c683d40",
    "ECBDL14-like": "7cc602a48e9301fc",
    "single cells": "e0fb57a0c6b547a5",
    "Corral-100": "06e62bbdfbf9d50c",
    "XOR-100": "e0588f403f8dfee0",
    "Parity3+3": "8860a63b10380754",
    "LED-25": "d21b80a98f0782a2",
    "SD1": "8f303a78c431e400",
}


@pytest.mark.smoke
@pytest.mark.parametrize("name", DIGESTS)
def test_rows_of_the_published_figures(name):
    if name in LARGE:
        problem = LARGE[name](1_000)
        assert digest(problem.X[0], problem.y) == DIGESTS[name]
    else:
        problem = SMALL[name]()
        assert digest(problem.X, problem.y) == DIGESTS[name]
    assert problem.redundant.tolist() == sorted(j for group in problem.relevant for j in group[1:])


@pytest.mark.parametrize("name", LARGE)
def test_blocks_of_any_size_have_the_same_rows(name):
    one, other = LARGE[name](300, seed=3), LARGE[name](300, seed=3, block_rows=77)
    assert [X.shape[0] for X in other.X] == [77, 77, 77, 69]
    assert digest(joined(one.X), one.y) == digest(joined(other.X), other.y)
    assert digest(joined(one.X), one.y) != digest(joined(LARGE[name](300, seed=4).X), one.y)


def test_class_rules():
    for seed in range(5):
        p = corral100(500, seed)
        x = p.X.astype(bool)
        assert np.array_equal(p.y == 1, (x[:, 0] & x[:, 1]) | (x[:, 2] & x[:, 3]))
        p = xor100(500, seed)
        assert np.array_equal(p.y == 1, p.X[:, 0] != p.X[:, 1])
        p = parity3plus3(500, seed)
        assert np.array_equal(p.y, p.X[:, :3].sum(axis=1) % 2)
        assert np.array_equal(p.X[:, :3], p.X[:, 3:6])


def test_madelon_combinations_lie_in_the_span_of_the_informative():
    p = madelon()
    informative = np.column_stack([p.X[:, :5], np.ones(len(p.X))])
    rest = p.X[:, 5:] - informative @ np.linalg.lstsq(informative, p.X[:, 5:], rcond=None)[0]
    unexplained = rest.var(axis=0) / p.X[:, 5:].var(axis=0)
    assert unexplained[:15].max() < 1e-9
    assert unexplained[15:].min() > 0.9


def test_oversampled_rows_are_copies():
    problem = ecbdl14_like(4_000, repeats=49)
    positive, negative = (problem.X[0][problem.y == c] for c in (1, 0))
    assert len(np.unique(positive, axis=0)) <= 41 < len(positive)
    assert len(np.unique(negative, axis=0)) == len(negative)


REFUSED = {
    "no rows": (epsilon_like, {"n_rows": 0}, "n_rows must be an integer of at least 1; got 0"),
    "too narrow": (epsilon_like, {"n_features": 299}, "n_features=299 is too small for 200 informative and 100"),
    "few positions": (ecbdl14_like, {"n_positions": 8}, "n_positions must be an integer of at least 9; got 8"),
    "copies": (kddb_like, {"n_rows": 10, "n_features": 1_000, "n_redundant": 900}, "nnz_per_row=29 is too small"),
    "blocks": (kddb_like, {"n_rows": 10**8, "block_rows": 10**8}, "block_rows=100000000 is too large"),
    "markers": (single_cells, {"n_genes": 199}, "n_types x n_markers must be at most n_genes=199"),
    "groups": (sd, {"n_groups": 3}, "n_groups must be 2, 4 or 6; got 3"),
    "segments": (led, {"n_irrelevant": 5}, "n_irrelevant must be 17 or 92; got 5"),
}


def test_single_cells_have_the_density_asked_for_and_markers_of_each_type():
    problem = single_cells(2_000, 3_000, 0.05, n_types=4, n_markers=5)
    X, strongest = problem.X[0], problem.informative[:4]  # one marker of each type
    assert X.nnz / np.prod(X.shape) == pytest.approx(0.05, abs=0.003)
    means = np.array([X[problem.y == t].mean(axis=0)[strongest] for t in range(4)])
    assert means.argmax(axis=0).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_arguments_raise(case):
    make, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        make(**options)
