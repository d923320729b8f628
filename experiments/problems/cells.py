"""Generate single-cell tables of any size, with the counts of genes in cells of a few types.

A count has a negative binomial distribution. Its expected value is the mean of the gene times the size of the cell. If
the gene is a marker of the cell's type, it is also multiplied by a fold change. The means of the genes have a
log-normal distribution. The random numbers of a cell depend only on the seed and the number of the cell, so the table
is the same for all block sizes.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array

from belief._utils.validation import is_real
from belief.kernels.compiling import kernel
from belief.method.arrays import Array
from problems.sparse import GOLDEN, SparseProblem, check_counts, mixed, uniform

_MEANS_SPREAD, _SIZE_SPREAD = 2.0, 0.4  # standard deviations of log(mean of a gene) and log(size of a cell)
_DISPERSION = 1.0  # the variance of a count is its mean + mean² / _DISPERSION
_FOLDS = (16.0, 2.0)  # fold changes of the strongest and the weakest marker gene of a type
_SIZES = 16  # number of different cell sizes


def single_cells(
    n_cells: int = 100_000,
    n_genes: int = 30_000,
    density: float = 0.05,
    *,
    n_types: int = 8,
    n_markers: int = 25,
    seed: int = 0,
    block_rows: int = 100_000,
) -> SparseProblem:
    """Generate a single-cell table. Each cell type is 0.7 times as frequent as the type before it.

    Parameters
    ----------
    n_cells, n_genes : int
        The shape of the table.
    density : float
        The expected share of non-zero counts.
    n_types : int
        The number of cell types, which are the classes.
    n_markers : int
        The number of marker genes of each type. Their mean is larger in this type than in the others.
    seed : int
        The random seed. The problem does not depend on `block_rows`.
    block_rows : int
        The number of cells per block.

    Returns
    -------
    SparseProblem

    Examples
    --------
    >>> import belief
    >>> from problems import single_cells
    >>> problem = single_cells(1_000, 2_000, n_types=3)
    >>> found = belief.select(problem.X, problem.y, 6, random_state=0).selected
    >>> set(found) <= set(problem.informative)
    True
    """
    check_counts(n_cells=n_cells, n_genes=n_genes, n_types=n_types, n_markers=n_markers, block_rows=block_rows)
    if n_types * n_markers > n_genes or not (is_real(density) and 0 < density < 1):
        raise ValueError(f"n_types x n_markers must be at most n_genes={n_genes}, and density between 0 and 1.")
    rng = np.random.default_rng(seed)
    means = np.exp(_MEANS_SPREAD * rng.standard_normal(n_genes))
    markers = rng.permutation(n_genes)[: n_types * n_markers].reshape(n_types, n_markers)
    sizes = np.exp(_SIZE_SPREAD * np.sort(rng.standard_normal(_SIZES)))
    priors = 0.7 ** np.arange(n_types)
    priors /= priors.sum()
    of_type = np.tile(means, (n_types, 1))
    for t in range(n_types):
        of_type[t, markers[t]] *= np.geomspace(*_FOLDS, n_markers)

    def share(log_scale: float) -> float:
        zeros = (1.0 + np.exp(log_scale) * sizes[:, None, None] * of_type / _DISPERSION) ** -_DISPERSION
        return float(1.0 - (zeros.mean(axis=(0, 2)) * priors).sum())

    of_type *= np.exp(brentq(lambda x: share(x) - density, -30.0, 30.0))
    stream, y, X = int(rng.integers(2**63)), np.empty(n_cells, np.int8), []
    for a in range(0, n_cells, block_rows):
        b = min(a + block_rows, n_cells)
        room = int((b - a) * n_genes * density * 1.2) + 4 * n_genes
        indptr, indices = np.zeros(b - a + 1, np.int64), np.empty(room, np.int32)
        values = np.empty(room, np.float32)
        _fill(a, y[a:b], np.cumsum(priors), sizes, of_type, indptr, indices, values, stream)
        n = int(indptr[-1])
        values.resize(n, refcheck=False)
        indices.resize(n, refcheck=False)
        X.append(csr_array((values, indices, indptr.astype(np.int32 if n < 2**31 else np.int64)), (b - a, n_genes)))
        X[-1].has_canonical_format = True
    informative = markers.T.ravel()  # first the strongest marker of each type, then the second strongest
    groups = tuple((int(j),) for j in informative)
    return SparseProblem(X, y, informative, groups, np.zeros(0, np.int64), np.zeros(n_genes, bool), "single cells")


@kernel()
def _fill(
    first: int,
    y: Array,
    ends: Array,
    sizes: Array,
    of_type: Array,
    indptr: Array,
    indices: Array,
    values: Array,
    seed: int,
) -> None:
    """Generate the types and counts of the cells from number `first` on, and write them to the arrays.

    Each count is drawn by inverting its distribution function.
    """
    n_types, n_genes = of_type.shape
    zeros = np.empty((n_types, len(sizes), n_genes))
    for t in range(n_types):
        for s in range(len(sizes)):
            for j in range(n_genes):
                zeros[t, s, j] = (1.0 + sizes[s] * of_type[t, j] / _DISPERSION) ** -_DISPERSION
    state = np.zeros(1, np.uint64)
    n = 0
    for i in range(len(y)):
        state[0] = mixed(np.uint64(seed) + np.uint64(first + i) * GOLDEN)
        u, t, s = uniform(state), 0, int(uniform(state) * len(sizes))
        while t < n_types - 1 and u >= ends[t]:
            t += 1
        for j in range(n_genes):
            u, p = uniform(state), zeros[t, s, j]
            if u < p:
                continue
            mean, count, below = sizes[s] * of_type[t, j], 0.0, p
            while u >= below and p > 1e-12:
                p *= (count + _DISPERSION) / (count + 1.0) * mean / (mean + _DISPERSION)
                count += 1.0
                below += p
            if n == len(indices):
                raise ValueError("More counts than expected: pass a larger block_rows.")
            indices[n], values[n] = j, count
            n += 1
        y[i] = t
        indptr[i + 1] = n
