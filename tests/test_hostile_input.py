"""Tables in memory that are malformed or extreme: the answer is right, or one sentence says what is wrong."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy import sparse

import belief

rng = np.random.default_rng(0)
Y = np.repeat([0, 1], 50)
X = rng.normal(size=(100, 6)) + Y[:, None] * [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]


# --- malformed sparse matrices ---

MALFORMED = {
    "csr index": "A = csr(); A.indices[5] = 10**6",
    "csr negative index": "A = csr(); A.indices[5] = -(10**6)",
    "csr indptr": "A = csr(); A.indptr[3] = 10**6",
    "csr empty": "A = csr(); A.indptr[3] = 10**6; A.indptr[-1] = 0",
    "csr short data": "A = csr(); A.data = A.data[:10]",
    "csc index": "A = csr().tocsc(); A.indices[5] = 10**7",
    "csc indptr": "A = csr().tocsc(); A.indptr[1] = 10**7",
    "bsr index": "A = csr().tobsr((2, 2)); A.indices[5] = 10**6",
    "bsr indptr": "A = csr().tobsr((2, 2)); A.indptr[3] = 10**6",
    "coo row": "A = csr().tocoo(); A.coords[0][5] = 10**7",
    "coo column": "A = csr().tocoo(); A.coords[1][5] = -(10**7)",
    "lil column": "A = csr().tolil(); A.rows[3][0] = 10**6",
    "lil lengths": "A = csr().tolil(); A.data[3] = A.data[3] + [1.0] * 10**5",
    "lil rows": "A = csr().tolil(); A.rows = np.concatenate([A.rows] * 1000)",
    "dok key": "A = csr().todok(); A._dict[10**7, 3] = 1.0",
}


@pytest.mark.parametrize("options", [{}, {"drop": [1]}])
def test_malformed_sparse_matrices_raise(options):
    code = """
        import numpy as np, belief
        from scipy.sparse import csr_array
        y = np.repeat([0, 1], 50)
        csr = lambda: csr_array(np.random.default_rng(0).integers(0, 3, (100, 6)).astype(float))
        for name, damage in CASES.items():
            exec(damage)
            try:
                belief.select(A, y, **OPTIONS)
                print(name, "is accepted")
            except ValueError as error:
                if not str(error).startswith("X is not a valid sparse matrix: "):
                    print(name, error)
    """
    code = textwrap.dedent(code).replace("CASES", repr(MALFORMED)).replace("OPTIONS", repr(options))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_every_sparse_format_gives_the_same_result(form):
    A = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    expected = belief.select(A, Y, 3, random_state=0)
    for options in ({}, {"keep": list(range(6))}):
        found = belief.select(A.asformat(form), Y, 3, random_state=0, **options)
        np.testing.assert_array_equal(found.weights, expected.weights)
