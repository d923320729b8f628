"""Section 6d of the method: whether the selection has settled, and if not, how large the next sample should be.

The weights of a sample come with standard errors, so what a larger sample would give can be drawn: if w was found by s
queries, those of a sample t times as large, of which the s are a part, are w + se·√(1 - 1/t)·ε, ε standard normal.
Each draw is selected from as the weights themselves are. How often that gives the same features is the chance that
the larger sample would; what the features chosen are worth in a draw, next to the best it has, is what they lose.
Only w, its error and R are needed, so nothing here knows of rows, blocks or engines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from belief.method.arrays import Array
from belief.method.settings import AUTO_SAMPLE

LARGER = 8  # the selection should be that of a sample so many times as large,
SURE = 0.9  # with this chance
SMALL_LOSS = 0.06  # or else what growing could still win be less than this share of the relevance
ALIKE = 0.8  # features that agree this much may stand for one another
BOUND = 0.1  # features that agree less with all others err independently
DRAWS = 200
MOST_RIVALS = 256  # features that are drawn, the likeliest
SAME_COST, WORTH_COST = 2e11, 2e12  # multiplications of the search


@dataclass(frozen=True)
class Outlook:
    """What a sample `LARGER` times as large would change."""

    chance: float  # that it selects the same features
    loss: float  # the share of the relevance it would find and this selection lacks
    doubtful: Array  # of each selected feature, how often it would be replaced


@dataclass(frozen=True)
class Reach:
    """The largest sample worth its time: to have the same features as a larger one, and to lose no relevance."""

    same: int
    worth: int

    @classmethod
    def of(cls, n_rows: int, n_features: int) -> Self:
        """By the multiplications of the search, s·n_rows·n_features: so the same on every machine."""
        each = n_rows * n_features
        return cls(
            min(n_rows, max(AUTO_SAMPLE, int(SAME_COST / each))), min(n_rows, max(AUTO_SAMPLE, int(WORTH_COST / each)))
        )


@dataclass(frozen=True)
class Step:
    """What to do next: stop, and why, or sample `size` queries."""

    size: int
    reason: str | None
    outlook: Outlook | None = None


def rivals(w: Array, se: Array, selected: Array, lowest: float, reach: float = 3.0) -> Array:
    """The selected features, and after them those that could be if their weights were `reach` errors higher.

    `lowest` is J of the last feature selected, in units of w. Others cannot get there, so they need not be drawn.
    """
    high = w + reach * se
    near = np.setdiff1d(np.flatnonzero(high >= max(lowest, 0.0)), selected)
    return np.concatenate(
        [selected, near[np.argsort(-high[near], kind="stable")][: max(0, MOST_RIVALS - len(selected))]]
    )


def draw(w: Array, se: Array, R: Array, larger: float, seed: int, n_draws: int = DRAWS) -> Array:
    """Weights that a sample `larger` times as large might give, one draw a row.

    Features that agree err together, nearly as much as they agree, so that copies seldom change places.
    """
    noise = np.random.default_rng(seed).standard_normal((n_draws, len(w)))
    bound = np.flatnonzero((R - np.diag(np.diag(R))).max(axis=1, initial=0.0) >= BOUND)
    noise[:, bound] = noise[:, bound] @ _root(R[np.ix_(bound, bound)])
    drawn: Array = w + np.sqrt(1.0 - 1.0 / larger) * se * noise
    return drawn


def _root(R: Array) -> Array:
    """A square root of the nearest thing to R that is a correlation."""
    C = R.copy()
    np.fill_diagonal(C, 1.0)
    values, vectors = np.linalg.eigh(C)
    C = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    root: Array = C / np.sqrt((C * C).sum(axis=0))
    return root


def select_all(W: Array, R: Array, n: int, theta: float = 1.0) -> tuple[Array, Array]:
    """Select n features by each row of W, all rows at once; and what they are worth: Σ J, in units of w."""
    left, keeps = np.maximum(W, 0.0), np.ones_like(W)
    chosen = np.empty((len(W), min(n, W.shape[1])), np.int64)
    worth = np.zeros(len(W))
    line = np.arange(len(W))
    for t in range(chosen.shape[1]):
        J = np.where(left < 0, -1.0, left * keeps)
        chosen[:, t] = best = J.argmax(axis=1)
        worth += np.maximum(J[line, best], 0.0)
        np.minimum(keeps, 1.0 - theta * R[best], out=keeps)
        left[line, best] = -1.0  # never again
    return chosen, worth


def outlook(w: Array, se: Array, R: Array, selected: Array, *, larger: float = LARGER, seed: int = 0) -> Outlook:
    """What a sample `larger` times as large would likely change.

    Parameters
    ----------
    w, se : array of shape (P,)
        Weights of the rivals and their standard errors.
    R : array of shape (P, P)
        Their agreement; 0 where it is not known, which makes a rival look stronger than it is.
    selected : array of int
        Which of them are selected.
    larger : float
        How many times as large.
    seed : int
        The seed of the draws.
    """
    W = draw(w, se, R, larger, seed)
    drawn, worth = select_all(W, R, len(selected))
    missing = ~_covered(drawn, selected, R)
    ours = select_all(W[:, selected], R[np.ix_(selected, selected)], len(selected))[1]
    loss = 1.0 - ours.sum() / worth.sum() if worth.sum() > 0 else 1.0
    return Outlook(float(1.0 - missing.any(axis=1).mean()), float(max(loss, 0.0)), missing.mean(axis=0))


def _covered(drawn: Array, selected: Array, R: Array) -> Array:
    """For each draw and selected feature: whether it is drawn, or one that agrees with it and was not selected."""
    there = np.zeros((len(drawn), len(R)), bool)
    np.put_along_axis(there, drawn, True, axis=1)
    new = there.copy()
    new[:, selected] = False
    alike = (R[selected] >= ALIKE).astype(np.float32)
    return there[:, selected] | (new.astype(np.float32) @ alike.T > 0)


def next_step(
    w: Array,
    se: Array,
    R: Array,
    selected: Array,
    s: int,
    n_rows: int,
    reach: Reach,
    *,
    jump: bool = False,
    seed: int = 0,
) -> Step:
    """Stop, and say why, or go on.

    Growing is worth it if, as far as w and its errors tell, a size within reach will settle the selection; if none
    will, as long as a larger sample would find much that this selection lacks.

    Parameters
    ----------
    w, se, R, selected
        As for `outlook`, found by `s` queries.
    s, n_rows : int
        The queries so far, and the rows there are.
    reach : Reach
        The largest samples allowed.
    jump : bool
        Go straight to the size foreseen, for data read anew each time; else double, which takes fewer queries.
    seed : int
        The seed of the draws.
    """
    now = outlook(w, se, R, selected, seed=seed)
    if s >= n_rows:
        return Step(s, "all rows", now)
    if now.chance >= SURE:
        return Step(s, "converged", now)

    def foreseen(size: int) -> Outlook:
        return outlook(w, se * np.sqrt(s / size), R, selected, seed=seed)

    target = _first(_sizes(s, reach.same), lambda size: size >= n_rows or foreseen(size).chance >= SURE)
    if target is None and now.loss <= SMALL_LOSS:
        return Step(s, "equivalent", now)
    if target is None:
        sizes = _sizes(s, reach.worth)
        target = _first(sizes, lambda size: foreseen(size).loss <= SMALL_LOSS) or (sizes[-1] if sizes else None)
    if target is None:
        return Step(s, "limit", now)
    return Step(target if jump else min(2 * s, target), None, now)


def _first(sizes: list[int], enough: Callable[[int], bool]) -> int | None:
    return next((size for size in sizes if enough(size)), None)


def _sizes(s: int, most: int) -> list[int]:
    """S doubled, and again, the last time to `most`."""
    sizes = []
    while s < most:
        s = min(2 * s, most)
        sizes.append(s)
    return sizes
