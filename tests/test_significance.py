"""Significance by permutation: the oracle, every engine, what changes nothing, noise, and the corners."""

import naive
import numpy as np
import pytest
from effort import THOROUGH

import belief

QUIET = pytest.mark.filterwarnings("ignore:n_neighbors:UserWarning")


# --- the oracle ---

COLUMNS = {
    "normal": lambda rng, m: (rng.standard_normal(m), False),
    "grid": lambda rng, m: (rng.integers(0, 4, m), False),
    "binary": lambda rng, m: (rng.integers(0, 2, m), rng.random() < 0.5),
    "marks": lambda rng, m: (rng.random(m) < 0.1, False),
    "nominal": lambda rng, m: (rng.integers(0, 5, m), True),
    "many levels": lambda rng, m: (rng.integers(0, 50, m), True),
    "lognormal": lambda rng, m: (np.exp(2 * rng.standard_normal(m)), False),
    "constant": lambda rng, m: (np.full(m, 3.0) if rng.random() < 0.3 else rng.standard_normal(m), rng.random() < 0.3),
}
KINDS = [*COLUMNS, "mixed"]


def random_table(seed):
    """Columns of one kind, or of all, of which the first two depend on the target; which are discrete; the target."""
    rng = np.random.default_rng(seed)
    kind, numeric = KINDS[seed % 9], seed % 4 == 3
    m, F, n_classes = int(rng.integers(24, 70)), int(rng.integers(2, 28)), int(rng.integers(2, 6))
    if seed % 11 == 0:
        m = int(rng.integers(10, 24))
    if seed % 11 == 5:  # more rows than knots
        m, F = 270, min(F, 17)
    labels = rng.choice(n_classes, m, p=rng.dirichlet(np.full(n_classes, 3.0)))
    labels[:n_classes] = range(n_classes)
    kinds = [kind if kind != "mixed" else str(rng.choice(list(COLUMNS))) for _ in range(F)]
    made = [COLUMNS[each](rng, m) for each in kinds]
    X, discrete = np.column_stack([x for x, _ in made]).astype(float), np.array([d for _, d in made])
    if seed % 3 == 0:
        X[rng.random(X.shape) < 0.1] = np.nan
    if seed % 5 != 4:
        X[:, 0] = np.where(discrete[0] & (rng.random(m) < 0.6), labels, X[:, 0] + ~discrete[0] * labels)
        if not discrete[1]:  # a function of a known feature
            X[:, 1] = np.where(rng.random(m) < 0.9, np.abs(X[:, 0] - 1), X[:, 1])
    y = np.nan_to_num(X[:, 0]) + (X[:, -1] > 0) + 0.5 * rng.standard_normal(m) if numeric else labels
    return X, np.round(y) if seed % 8 == 3 else y, discrete, numeric


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(200) if THOROUGH else range(0, 200, 17))
def test_p_values_agree_with_the_oracle(seed):
    """The shuffles come from the same keys, so the p-values are the same, not merely close."""
    X, y, discrete, numeric = random_table(seed)
    how = {"class_weight": ["balanced", "prior", {c: 1 + c for c in range(5)}][seed % 5 % 3]} if not numeric else {}
    how |= {"neighborhood": "pooled" if seed % 7 == 0 else "per_class", "scale": ["auto", "standard"][seed % 2]}
    k, rounds = ["auto", 5, 3][seed % 3], 2 if seed % 6 == 0 else "auto"
    task = "regression" if numeric else "classification"
    got = belief.select(
        X, y, 2, discrete_features=discrete, task=task, random_state=seed, copies="keep", rounds=rounds, n_neighbors=k,
        **how,
    )  # fmt: skip
    target = {"target": "numeric" if numeric else "classes", "most_rounds": None if rounds == "auto" else rounds}
    settings = {**naive.DEFAULT, **how, **target, "k": k, "seed": seed, "significant": True}
    ref = naive.belief(X, y, 2, discrete=discrete, **settings)
    np.testing.assert_array_equal(got.round, ref.sure.round)
    np.testing.assert_array_equal(got.metric, ref.sure.metric)
    exact = 1e-6 if numeric else 1e-9  # the degrees of misses are summed in single precision
    np.testing.assert_allclose(got.p_neighbours, ref.sure.p_neighbours, rtol=exact)
    for name in ("p_univariate", "p_value", "q_value"):  # and so are the statistics of these shuffles
        np.testing.assert_allclose(getattr(got, name), getattr(ref.sure, name), rtol=1e-3, atol=1e-290, err_msg=name)
    np.testing.assert_allclose(got.weights, ref.w, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(got.null_weight, ref.null_weight, rtol=exact, atol=1e-11)
    np.testing.assert_allclose(got.relevance, ref.relevance, rtol=1e-3, atol=1e-9)
    assert got.selected.tolist() == ref.selected
