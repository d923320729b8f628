"""Sums over folds of the queries, for the standard errors of grouped rows and the stability of a selection.

The queries of the sample are divided into folds, and groups are not split. Adding the sums of some folds gives the sums
of all their queries, without another search. A half-sample, on which the selection is repeated, consists of half of the
folds. The standard error of w follows from the variation between folds. It is valid even if the rows of a group depend
on each other, or rows have weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from belief.method.arrays import Array
from belief.method.partials import Pairs, Tally
from belief.method.relevance import average_hits, has_pairs, mean
from belief.method.sampling import row_keys

FOLDS = (20, 50)  # the smallest and the largest number of folds; as many as MAX_CELLS allows
MAX_CELLS = 10_000_000  # folds x features
FOLD, HALF = 5, 2**22  # the streams of the keys by which groups are assigned to folds, and half of the folds is chosen
Z_95 = 1.96


def deal(pairs: Pairs, group_of: Callable[[Array], Array], n_features: int, seed: int) -> list[Pairs]:
    """Divide pairs into folds; all pairs with queries of the same group are in the same fold.

    `group_of` returns the group of each row, given the row ids.
    """
    rows, query = np.unique(pairs.query, return_inverse=True)
    _, unit = np.unique(group_of(rows), return_inverse=True)
    n_units = int(unit.max(initial=0)) + 1
    rank = np.argsort(np.argsort(row_keys(seed, FOLD, np.arange(n_units))))
    n = min(n_units, int(np.clip(MAX_CELLS // max(n_features, 1), *FOLDS)))
    fold = (rank % n)[unit][query]
    pairs = replace(pairs, coupled=False)
    return [pairs.take(fold == f) for f in range(n)]


def fold_errors(folds: Sequence[Tally], v: Array) -> Array:
    """Return the standard error of the relevance w, from the influence of each fold of the queries.

    For the queries of class c, DD is the sum of their differences from misses, and DC is the number of pairs in this
    sum. ED and EC are the same for hits. DD_f, DC_f, ED_f and EC_f are the sums over the queries in fold f only. With
    the class weights v(c), A = DD/DC and B = ED/EC, the influence of fold f on w is Σ_c v(c)·((DD_f - A·DC_f)/DC -
    (ED_f - B·EC_f)/EC) (section 11 of method.md).
    """
    v = v[:, None] if v.ndim == 1 else v
    return _root_of_squares([(v * (miss - hit)).sum(axis=0) for miss, hit in _influences(folds)])


def separation_errors(folds: Sequence[Tally]) -> Array:
    """Return the standard error of the separation of each class, from the influence of each fold of the queries."""
    whole = reduce(Tally.merge, folds)
    of_folds = [miss - average_hits(hit, whole.EC) for miss, hit in _influences(folds)]
    return np.where(has_pairs(whole), _root_of_squares(of_folds), 0.0)


def _influences(folds: Sequence[Tally]) -> Iterator[tuple[Array, Array]]:
    """Yield, for each fold, its influence on the mean difference from misses and from hits, for each class."""
    whole = reduce(Tally.merge, folds)
    A, B = mean(whole.DD, whole.DC), mean(whole.ED, whole.EC)
    for x in folds:
        yield mean(x.DD - A * x.DC, whole.DC), mean(x.ED - B * x.EC, whole.EC)


def _root_of_squares(influences: Sequence[Array]) -> Array:
    n = len(influences)
    return np.sqrt(sum(x**2 for x in influences) * n / max(n - 1, 1))


@dataclass(frozen=True, eq=False)
class Stability:
    """How much the selection varies when it is repeated on half-samples.

    Attributes
    ----------
    frequency : ndarray of shape (n_features,)
        The share of the half-samples in which each feature is selected.
    index : float
        The stability index of Nogueira et al. (2018): 1 if the same features are always selected, about 0 if features
        are selected at random.
    interval : tuple of float
        The 95 % confidence interval of the index, given the sample.
    interchangeable : list of list of int
        Sets of features that can replace each other: they were selected in some half-samples, and are redundant with
        each other. Empty if the redundancy measure does not define which features are redundant.
    """

    frequency: Array
    index: float
    interval: tuple[float, float]
    interchangeable: list[list[int]]


def half_samples(folds: Sequence[Tally], n: int, seed: int) -> Iterator[Tally]:
    """Yield the sums of n half-samples, each a random half of the folds."""
    for b in range(n):
        order = np.argsort(row_keys(seed, HALF + b, np.arange(len(folds))))
        yield reduce(Tally.merge, (folds[f] for f in order[: max(1, len(folds) // 2)]))


def nogueira_index(chosen: Array) -> tuple[float, tuple[float, float]]:
    """Return the stability index of Nogueira et al. (2018), and its 95 % confidence interval.

    `chosen` is a mask of shape (half-samples, features) of the selected features.
    """
    M, F = chosen.shape
    p, k = chosen.mean(axis=0), chosen.sum(axis=1)
    share = k.mean() / F
    by_chance = share * (1.0 - share)
    if not by_chance > 0 or M < 2:
        return 1.0, (1.0, 1.0)
    index = 1.0 - (M / (M - 1.0)) * float((p * (1.0 - p)).mean()) / by_chance
    of_set = (chosen @ p / F - k * share / F + index / 2.0 * (2.0 * share * k / F - k / F - share + 1.0)) / by_chance
    error = Z_95 * 2.0 / M * float(np.sqrt(((of_set - of_set.mean()) ** 2).sum()))
    return index, (index - error, min(index + error, 1.0))


def interchangeable_sets(features: Array, is_redundant: Array) -> list[list[int]]:
    """Return the sets of two or more features that are connected by redundancy, directly or through other features.

    `is_redundant` says for each pair of features whether they are redundant with each other.
    """
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(is_redundant, directed=False)
    sets = [features[label == c].tolist() for c in np.unique(label)]
    return [each for each in sets if len(each) > 1]
