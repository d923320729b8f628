"""The schemes that the paper names beside its own, each against plain loops that share no code with the package."""

import math

import numpy as np
import pandas as pd
import pytest
from rivals import CleanedRelief, GramSchmidtRelief, KMeansRelief, Simba

SCHEMES = [KMeansRelief, GramSchmidtRelief, CleanedRelief, Simba]


def repeating(seed, m=60, n_classes=2):
    """Two signals, copies of the first turned round and with noise, their sum, and noise; the last is nominal."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, m)
    a, b = rng.normal(size=m) + 2.0 * y, rng.normal(size=m) + 1.5 * (y == 0)
    noise = rng.normal(size=(m, 3))
    nominal = (y + rng.integers(0, 2, m)) % (n_classes + 1)
    return np.column_stack([a, -3 * a, a + 0.3 * noise[:, 0], b, a + b, noise[:, 1:], nominal]), y


def diff(X, a, b, discrete, width):
    return [
        float(X[a][j] != X[b][j]) if discrete[j] else abs(X[a][j] - X[b][j]) / width[j] if width[j] else 0.0
        for j in range(len(width))
    ]


def widths(X):
    return [max(x) - min(x) for x in zip(*X, strict=True)]


def squared(values):
    return sum(v * v for v in values)


def relieff_loops(X, y, k, discrete, width=None):
    """Kononenko's ReliefF, in loops; differences as shares of the range, or of another width."""
    m, F = len(X), len(X[0])
    width = widths(X) if width is None else width
    P = {c: sum(v == c for v in y) / m for c in set(y)}
    W = [0.0] * F
    for q in range(m):
        for c in P:
            others = [r for r in range(m) if r != q and y[r] == c]
            near = sorted(others, key=lambda r: squared(diff(X, q, r, discrete, width)))[:k]
            share = -1.0 if c == y[q] else P[c] / (1 - P[y[q]])
            for r in near:
                for j, d in enumerate(diff(X, q, r, discrete, width)):
                    W[j] += share * d / (len(near) * m)
    return W


def correlation(a, b):
    a, b = [x - sum(a) / len(a) for x in a], [x - sum(b) / len(b) for x in b]
    return sum(x * z for x, z in zip(a, b, strict=True)) / math.sqrt(squared(a) * squared(b))


# --- K-means ---


def kmeans_loops(X, W, n, candidates):
    """Lloyd's K-means over the best features, by 1 - |r|; then the best of each cluster, and of the rest."""
    order = sorted(range(len(W)), key=lambda j: -round(W[j], 10))
    above = [j for j in order if W[j] > -min(W)]
    few = order[: max(n, len(above))] if candidates == "auto" else order[: math.ceil(candidates * n)]
    points = []
    for j in few:
        x = [row[j] for row in X]
        x = [v - sum(x) / len(x) for v in x]
        points.append([v / math.sqrt(squared(x)) for v in x])
    start = [0]
    while len(start) < n:
        left = [i for i in range(len(few)) if i not in start]
        start.append(min(left, key=lambda i: round(max(abs(correlation(points[i], points[s])) for s in start), 10)))
    centres, group = [points[s] for s in start], None
    while True:
        r = [[sum(a * b for a, b in zip(x, c, strict=True)) for c in centres] for x in points]
        new = [max(range(n), key=lambda g, i=i: round(abs(r[i][g]), 10)) for i in range(len(few))]
        if new == group:
            break
        group = new
        for g in set(group):
            mine = [i for i in range(len(few)) if group[i] == g]
            total = [sum(points[i][t] * (-1 if r[i][g] < 0 else 1) for i in mine) for t in range(len(X))]
            centres[g] = [v / math.sqrt(squared(total)) for v in total]
    best = [few[min(i for i in range(len(few)) if group[i] == g)] for g in sorted(set(group))]
    best.sort(key=order.index)
    return (best + [j for j in order if j not in best])[:n]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "candidates"), [(2, 3.0), (3, 2.5), (5, 1.0), (2, "auto")])
def test_kmeans_relief_is_that_of_loops(seed, n, candidates):
    X, y = repeating(seed, n_classes=2 + seed % 2)
    discrete = np.arange(X.shape[1]) == 7
    found = KMeansRelief(n, candidates=candidates, n_neighbors=4, discrete_features=discrete).fit(X, y)
    W = relieff_loops(X.tolist(), y.tolist(), 4, discrete)
    np.testing.assert_allclose(found.scores_, W, atol=1e-12)
    assert found.selected_.tolist() == kmeans_loops(X.tolist(), W, n, candidates)


# --- Gram-Schmidt ---


def gram_schmidt_loops(X, y, n, k, discrete):
    """The best by ReliefF; its projection off all others; ReliefF of what is left, as shares of the first ranges."""
    width, F, m = widths(X), len(X[0]), len(X)
    w = relieff_loops(X, y, k, discrete)
    columns = [[row[j] - sum(r[j] for r in X) / m for row in X] for j in range(F)]
    length = [squared(x) for x in columns]
    selected, scores, left = [], [], set(range(F))
    while len(selected) < n and left:
        best = max(sorted(left), key=lambda j: round(w[j], 10))
        selected.append(best)
        scores.append(w[best])
        left.remove(best)
        for j in sorted(left):
            share = sum(a * b for a, b in zip(columns[best], columns[j], strict=True)) / squared(columns[best])
            columns[j] = [b - share * a for a, b in zip(columns[best], columns[j], strict=True)]
            if squared(columns[j]) <= 1e-18 * length[j]:
                left.remove(j)
                columns[j] = [0.0] * m
        w = relieff_loops([list(row) for row in zip(*columns, strict=True)], y, k, [False] * F, width)
    return selected, scores


@pytest.mark.parametrize("seed", range(3))
def test_gram_schmidt_relief_is_that_of_loops(seed):
    X, y = repeating(seed, m=40, n_classes=2 + seed % 2)
    X = X[:, [0, 2, 3, 5, 7]]
    discrete = np.arange(5) == 4
    found = GramSchmidtRelief(4, n_neighbors=3, discrete_features=discrete).fit(X, y)
    selected, scores = gram_schmidt_loops(X.tolist(), y.tolist(), 4, 3, discrete)
    assert found.selected_.tolist() == selected
    np.testing.assert_allclose(found.selection_scores_, scores, atol=1e-12)
    assert found.ranking_[selected].tolist() == [1, 1, 1, 1]


# --- cleaning ---


def cleaned_loops(X, y, k, discrete):
    """The rows that their k nearest do not outvote."""
    width, stay = widths(X), []
    for q in range(len(X)):
        others = [r for r in range(len(X)) if r != q]
        near = sorted(others, key=lambda r: squared(diff(X, q, r, discrete, width)))[:k]
        votes = {c: sum(y[r] == c for r in near) for c in set(y)}
        if votes[y[q]] == max(votes.values()):
            stay.append(q)
    return stay


@pytest.mark.parametrize("k", [1, 3, 4])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_cleaned_relief_is_that_of_loops(k, n_classes):
    X, y = repeating(k, n_classes=n_classes)
    X = X[:, [0, 3, 5, 7]]
    discrete = np.arange(4) == 3
    stay = cleaned_loops(X.tolist(), y.tolist(), k, discrete)
    assert len(stay) < len(y)
    found = CleanedRelief(2, clean_neighbors=k, n_neighbors=3, discrete_features=discrete).fit(X, y)
    expected = relieff_loops(X[stay].tolist(), y[stay].tolist(), 3, discrete)
    np.testing.assert_allclose(found.scores_, expected, atol=1e-12)


# --- Simba ---


def simba_loops(X, y, discrete, order):
    """Figure 2 of the paper: w + ½((x - miss)²/‖x - miss‖_w - (x - hit)²/‖x - hit‖_w)·w, row by row; then w²/max."""
    m, width = len(X), widths(X)
    w = [1.0] * len(width)
    for q in order:
        gain = [0.0] * len(w)
        for sign, rows in ((1, [r for r in range(m) if y[r] != y[q]]), (-1, [r for r in range(m) if y[r] == y[q]])):
            norms = {
                r: math.sqrt(squared(a * d for a, d in zip(w, diff(X, q, r, discrete, width), strict=True)))
                for r in rows
                if r != q
            }
            near = min(norms, key=norms.get)
            for j, d in enumerate(diff(X, q, near, discrete, width)):
                gain[j] += sign * d * d / norms[near]
        w = [a + 0.5 * g * a for a, g in zip(w, gain, strict=True)]
    return [a * a / max(b * b for b in w) for a in w]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_simba_is_that_of_loops(n_classes):
    X, y = repeating(5, n_classes=n_classes)
    discrete = np.arange(8) == 7
    found = Simba(3, n_steps=100, discrete_features=discrete, random_state=3).fit(X, y)
    rng = np.random.default_rng(3)
    order = [*rng.permutation(60), *rng.permutation(60)][:100]
    expected = simba_loops(X.tolist(), y.tolist(), discrete, order)
    np.testing.assert_allclose(found.scores_, expected, rtol=1e-9)
    assert found.selected_.tolist() == sorted(range(8), key=lambda j: -expected[j])[:3]
    assert found.scores_.max() == 1


# --- all of them ---


@pytest.mark.smoke
@pytest.mark.parametrize("kind", SCHEMES)
def test_names_missing_values_and_constants(kind):
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"] * 30)
    table = pd.DataFrame({"one": 1.0, "colour": np.where(y == "no", "red", "blue"), "noise": rng.random(60)})
    table.loc[::7, "noise"] = None
    table.loc[::11, "colour"] = None
    found = kind(3, random_state=0).fit(table, y)
    assert found.selected_.tolist() == [1, 2, 0]
    assert found.scores_[0] == 0
    assert found.classes_.tolist() == ["no", "yes"]
    again = kind(1, random_state=0).fit(table, y)
    assert again.get_feature_names_out().tolist() == ["colour"]
    np.testing.assert_array_equal(again.scores_, found.scores_)
