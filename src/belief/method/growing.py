"""Decide whether the selection has converged, and how large the next sample should be (section 6d of method.md).

The weights come with standard errors, so the weights of a larger sample can be simulated: if w was computed from s
queries, a sample t times as large that contains them gives w + se·√(1 - 1/t)·ε, with ε standard normal. Features are
selected by each simulated set of weights. The share of simulations that select the same features is the chance that the
larger sample would select them, too. The expected loss of stopping now is the relevance by which the simulated
selections exceed the present one. Only w, its standard error and the redundancy are needed, so this module does not
access rows or engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from belief.method.arrays import Array
from belief.method.redundancy.base import Rule
from belief.method.settings import AUTO_SAMPLE

LARGER = 8  # simulate a sample this many times as large
MIN_CHANCE = 0.9  # stop if the larger sample would give the same selection with at least this probability
MAX_LOSS = 0.06  # stop if the larger sample would add no more than this share of the relevance
INTERCHANGEABLE = 0.8  # features with at least this redundancy can replace each other
CORRELATED = 0.1  # features have independent errors if their redundancy with all others is below this
N_ERRORS = 3.0  # rivals are the features that would be selected if their weights rose by this many standard errors
N_DRAWS = 200
MAX_RIVALS = 256  # the largest number of features in the simulation
MAX_COST_SAME, MAX_COST_LOSS = 2e11, 2e12  # largest numbers of multiplications in the search (see `Limits`)


@dataclass(frozen=True)
class Forecast:
    """The expected changes of the selection if the sample were `LARGER` times as large."""

    chance: float  # probability that the larger sample gives the same selection
    loss: float  # share of the relevance of the larger sample's selection that the present selection lacks


@dataclass(frozen=True)
class Limits:
    """The largest numbers of sampled rows that are worth their cost.

    The sample grows until a larger one would select the same features, but not above `same` rows. It may grow
    further, up to `loss` rows, until a larger one would find little more relevance.
    """

    same: int
    loss: int

    @classmethod
    def from_shape(cls, n_rows: int, n_features: int) -> Self:
        """Return the limits for a table of this shape.

        They limit the number of multiplications of the search: sample size times `n_rows` times `n_features`. So they
        are the same on every machine.
        """
        cost = n_rows * n_features
        same, loss = (min(n_rows, max(AUTO_SAMPLE, int(x / cost))) for x in (MAX_COST_SAME, MAX_COST_LOSS))
        return cls(same, loss)


@dataclass(frozen=True)
class Step:
    """The next step of a run: enlarge the sample to `size` queries, or stop for a `reason`."""

    size: int
    reason: str | None


def find_rivals(w: Array, se: Array, selected: Array, lowest: float) -> Array:
    """Return the selected features, followed by those that could be selected if their weights rose a little.

    `lowest` is the score J of the last selected feature, in units of w.
    """
    high = w + N_ERRORS * se
    near = np.setdiff1d(np.flatnonzero(high >= max(lowest, 0.0)), selected)
    near = near[np.argsort(-high[near], kind="stable")]
    return np.concatenate([selected, near[: max(0, MAX_RIVALS - len(selected))]])


def draw_weights(w: Array, se: Array, R: Array, seed: int) -> Array:
    """Simulate the weights of a sample `LARGER` times as large; each line of the result is one simulation.

    The errors of redundant features are correlated, so that copies seldom swap places.
    """
    noise = np.random.default_rng(seed).standard_normal((N_DRAWS, len(w)))
    correlated = np.flatnonzero((R - np.diag(np.diag(R))).max(axis=1, initial=0.0) >= CORRELATED)
    # the symmetric square root of R, with negative eigenvalues set to 0 and columns normalised to length 1
    C = R[np.ix_(correlated, correlated)]
    np.fill_diagonal(C, 1.0)
    values, vectors = np.linalg.eigh(C)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    noise[:, correlated] = noise[:, correlated] @ (root / np.sqrt((root * root).sum(axis=0)))
    return w + np.sqrt(1.0 - 1.0 / LARGER) * se * noise


def select_from_draws(W: Array, R: Array, n: int, rule: Rule) -> tuple[Array, Array]:
    """Select n features with each simulated set of weights (line of W); return them and the sums of their scores."""
    left, accumulated = np.maximum(W, 0.0), np.full_like(W, rule.initial)
    selected = np.empty((len(W), min(n, W.shape[1])), np.int64)
    total = np.zeros(len(W))
    line = np.arange(len(W))
    for t in range(selected.shape[1]):
        J = np.where(left < 0, -1.0, rule.score(left, accumulated, t))
        selected[:, t] = best = J.argmax(axis=1)
        total += np.maximum(J[line, best], 0.0)
        accumulated = rule.accumulate(accumulated, R[best])
        left[line, best] = -1.0  # never select it again
    return selected, total


def forecast(w: Array, se: Array, R: Array, selected: Array, rule: Rule, *, seed: int = 0) -> Forecast:
    """Simulate how the selection would change with a sample `LARGER` times as large.

    w and `se` are the weights and standard errors of the features that may be selected (see `find_rivals`). R is their
    redundancy; it is 0 if it is unknown, so a feature may look stronger than it is. `selected` are the positions, in
    these arrays, of the features that are selected at present.
    """
    rule = rule.growth_rule()
    W = draw_weights(w, se, R, seed)
    drawn, total = select_from_draws(W, R, len(selected), rule)
    # a simulation may replace a selected feature by a new feature that is redundant with it
    is_drawn = np.zeros((len(drawn), len(R)), bool)
    np.put_along_axis(is_drawn, drawn, True, axis=1)
    is_new = is_drawn.copy()
    is_new[:, selected] = False
    can_replace = (R[selected] >= INTERCHANGEABLE).astype(np.float32)
    is_covered = is_drawn[:, selected] | (is_new.astype(np.float32) @ can_replace.T > 0)
    ours = select_from_draws(W[:, selected], R[np.ix_(selected, selected)], len(selected), rule)[1]
    loss = 1.0 - ours.sum() / total.sum() if total.sum() > 0 else 1.0
    return Forecast(float(1.0 - (~is_covered).any(axis=1).mean()), float(max(loss, 0.0)))


def next_step(
    w: Array,
    se: Array,
    R: Array,
    selected: Array,
    rule: Rule,
    s: int,
    n_rows: int,
    limits: Limits,
    *,
    jump: bool = False,
    seed: int = 0,
) -> Step:
    """Decide whether to stop or to enlarge the sample.

    The sample grows if the selection is expected to converge at some size within the limits. Otherwise, it grows as
    long as a larger sample is expected to find much relevance that this selection lacks.

    The first five arguments are those of `forecast`, computed from `s` queries. With `jump`, the sample grows straight
    to the expected size, because data is read again at each step; otherwise, it at most doubles.
    """
    now = forecast(w, se, R, selected, rule, seed=seed)
    if now.chance >= MIN_CHANCE:
        return Step(s, "converged")

    def forecast_at(size: int) -> Forecast:
        return forecast(w, se * np.sqrt(s / size), R, selected, rule, seed=seed)

    sizes = _doubled_sizes(s, limits.same)
    target = next((x for x in sizes if x >= n_rows or forecast_at(x).chance >= MIN_CHANCE), None)
    if target is None and now.loss <= MAX_LOSS:
        return Step(s, "equivalent")
    if target is None and (sizes := _doubled_sizes(s, limits.loss)):
        target = next((x for x in sizes if forecast_at(x).loss <= MAX_LOSS), sizes[-1])
    if target is None:
        return Step(s, "limit")
    return Step(target if jump else min(2 * s, target), None)


def _doubled_sizes(s: int, limit: int) -> list[int]:
    """Return the sizes 2s, 4s, 8s, ... below the limit, and the limit itself."""
    sizes = []
    while s < limit:
        s = min(2 * s, limit)
        sizes.append(s)
    return sizes
