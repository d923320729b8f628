"""Tests of the generators of the small published problems."""

import numpy as np
import pytest
from problems import Problem, corral100, led, madelon, parity3plus3, sd, xor100

DISPLAY = """
 _       _   _       _   _   _   _   _
| |   |  _|  _| |_| |_  |_    | |_| |_|
|_|   | |_   _|   |  _| |_|   | |_|  _|
"""
AT = ((0, 1), (1, 0), (1, 2), (1, 1), (2, 0), (2, 2), (2, 1))  # line and place of the segments, in their order
LINES = [line.ljust(40) for line in DISPLAY.strip("\n").splitlines()]
DIGITS = np.array([[LINES[r][4 * d + c] != " " for r, c in AT] for d in range(10)], int)

# name: maker, its arguments, shape, classes, groups of relevant features, redundant features, binary or not
CASES = {
    "Corral-100": (corral100, {}, (32, 99), 2, [[0], [1], [2], [3]], [], True),
    "XOR-100": (xor100, {}, (50, 99), 2, [[0], [1]], [], True),
    "Parity3+3": (parity3plus3, {}, (64, 12), 2, [[0, 3], [1, 4], [2, 5]], [3, 4, 5], True),
    "Madelon": (madelon, {}, (2000, 500), 2, [[j] for j in range(5)], list(range(5, 20)), False),
    "LED-25": (led, {}, (50, 24), 10, [[j] for j in range(7)], [], True),
    "LED-100": (led, {"n_irrelevant": 92, "noise": 0.1}, (50, 99), 10, [[j] for j in range(7)], [], True),
}
for number, n_groups in enumerate((2, 4, 6), 1):
    tens = [list(range(10 * g, 10 * g + 10)) for g in range(n_groups)]
    copies = [j for group in tens for j in group[1:]]
    CASES[f"SD{number}"] = (sd, {"n_groups": n_groups}, (75, 4000 + 10 * n_groups), 3, tens, copies, False)


@pytest.mark.parametrize("name", CASES)
def test_shape_and_truth(name):
    maker, arguments, shape, n_classes, relevant, redundant, binary = CASES[name]
    problem = maker(**arguments)
    assert isinstance(problem, Problem)
    assert problem.name == name
    assert problem.X.shape == shape
    assert problem.X.dtype == float
    assert problem.y.shape == shape[:1]
    assert np.array_equal(np.unique(problem.y), np.arange(n_classes))
    assert problem.relevant == tuple(map(tuple, relevant))
    assert problem.redundant.tolist() == redundant
    assert problem.discrete.shape == shape[1:]
    assert np.all(problem.discrete == binary)
    assert np.isin(problem.X, (0, 1)).all() == binary
    assert problem.X.std(axis=0).min() > 0


@pytest.mark.parametrize("name", CASES)
def test_seed_determines_the_data(name):
    maker, arguments, *_ = CASES[name]
    first, again, other = maker(**arguments, seed=3), maker(**arguments, seed=3), maker(**arguments, seed=4)
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


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
        p = led(n_rows=500, seed=seed)
        assert np.array_equal(p.X[:, :7], DIGITS[p.y])


def test_bits_are_fair_except_in_corral():
    p = corral100(20_000)
    assert np.abs(np.delete(p.X, 5, axis=1).mean(axis=0) - 0.5).max() < 0.02
    assert abs(p.y.mean() - 7 / 16) < 0.02
    agree = (p.y[:, None] == p.X).mean(axis=0)
    assert agree[5] == pytest.approx(0.75, abs=0.01)
    for c in (0, 1):  # in either class, so that it says nothing of the four that matter beyond the class
        mine = p.X[p.y == c]
        assert np.abs(np.corrcoef(mine[:, :6], rowvar=False)[5, :5]).max() < 0.04
    assert np.abs(agree[6:] - 0.5).max() < 0.02


def test_led_digits_are_distinct():
    assert len(set(map(tuple, DIGITS))) == 10
    assert DIGITS.sum() == 49  # the segments lit by all ten digits


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.2, 1.0])
def test_led_noise_is_the_share_of_wrong_segments(noise):
    p = led(noise=noise, n_rows=20_000)
    wrong = (p.X[:, :7] != DIGITS[p.y]).mean(axis=0)
    assert np.abs(wrong - noise).max() <= (0.012 if 0 < noise < 1 else 0)


@pytest.mark.parametrize("n_groups", [2, 4, 6])
def test_sd_groups_correlate_within_and_not_across(n_groups):
    p = sd(n_groups, 6000, 20)
    assert np.bincount(p.y).tolist() == [2000, 2000, 2000]
    means = np.array([p.X[p.y == c].mean(axis=0) for c in range(3)])
    group = np.append(np.repeat(np.arange(n_groups), 10), n_groups + np.arange(20))
    correlation = np.corrcoef(p.X - means[p.y], rowvar=False)  # within the classes
    alike = group[:, None] == group
    assert correlation[alike].min() > 0.99
    assert np.abs(correlation[~alike]).max() < 0.07
    spread = np.ptp(means, axis=0)
    assert spread[: 10 * n_groups].min() > 1.5
    assert spread[10 * n_groups :].max() < 0.2
    assert len(np.unique(means[:, : 10 * n_groups : 10].round(), axis=1).T) == n_groups  # no two groups shift alike


def test_sd_has_classes_of_25():
    assert np.bincount(sd(6).y).tolist() == [25, 25, 25]


def test_madelon_combinations_lie_in_the_span_of_the_informative_and_probes_do_not():
    p = madelon()
    informative = np.column_stack([p.X[:, :5], np.ones(len(p.X))])

    def unexplained(columns):
        rest = columns - informative @ np.linalg.lstsq(informative, columns, rcond=None)[0]
        return rest.var(axis=0) / columns.var(axis=0)

    assert unexplained(p.X[:, 5:20]).max() < 1e-9
    assert unexplained(p.X[:, 20:]).min() > 0.9


def test_madelon_needs_a_nonlinear_classifier():
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    p = madelon()
    X = p.X[:, :20] / p.X[:, :20].std(axis=0)
    assert cross_val_score(KNeighborsClassifier(), X, p.y).mean() > 0.85
    assert cross_val_score(LogisticRegression(), X, p.y).mean() < 0.75
    assert cross_val_score(KNeighborsClassifier(), p.X[:, 20:40], p.y).mean() < 0.6


@pytest.mark.parametrize(
    ("maker", "arguments", "message"),
    [
        (corral100, {"n_rows": 0}, "n_rows"),
        (xor100, {"seed": -1}, "seed"),
        (madelon, {"n_rows": 2.5}, "n_rows"),
        (sd, {"n_groups": 3}, "2, 4 or 6"),
        (sd, {"n_noise": -1}, "n_noise"),
        (led, {"n_irrelevant": 5}, "17 or 92"),
        (led, {"noise": 1.5}, "noise"),
    ],
)
def test_invalid_arguments_raise(maker, arguments, message):
    with pytest.raises(ValueError, match=message):
        maker(**arguments)
