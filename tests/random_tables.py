"""Random tables on which engines are compared: with ties, copies, outliers, nominal columns, or missing values."""

import numpy as np

KINDS = ["plain", "offset", "ties", "copies", "outliers", "nominal", "missing"]


def table(seed):
    """Return a random table: its values, the mask of its discrete features, and its classes."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, F = int(rng.integers(50, 900)), int(rng.integers(2, 40))
    X, discrete = rng.normal(size=(n, F)), np.zeros(F, bool)
    if kind == "offset":
        X = X * 10.0 ** rng.integers(-4, 4, F) + rng.normal(size=F) * 1e3
    if kind == "ties":
        X = rng.integers(0, 3, (n, F)).astype(float)
    if kind == "copies":
        X = X[rng.integers(0, max(2, n // 10), n)]
    if kind == "outliers":
        X[rng.integers(0, n, 5), rng.integers(0, F, 5)] = 1e6
    if kind in ("nominal", "missing"):
        discrete = rng.random(F) < 0.5
        for j in np.flatnonzero(discrete):
            X[:, j] = rng.integers(0, rng.choice([1, 2, 5, 60]), n)
    if kind == "missing":
        X[rng.random((n, F)) < 0.15] = np.nan
    labels = rng.choice(3, n, p=[0.6, 0.37, 0.03]).astype(np.int32)
    labels[:3] = [0, 1, 2]
    X[:, 0] = np.where(np.isnan(X[:, 0]) | discrete[0], X[:, 0], X[:, 0] + labels)  # one relevant feature
    return X, discrete, labels
