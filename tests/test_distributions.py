"""Distributions of the selected features: their numbers on every engine, their descriptions in words, and plots."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import belief
from belief.method.distributions import SHARES, SampledValues, mean_ranks
from belief.method.sampling import Sample
from belief.method.targets import Classes, Numeric
from belief.report import render
from belief.report.content import collect_content
from belief.report.distributions import describe_direction

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

pytestmark = pytest.mark.slow


def table(m=300, seed=3):
    rng = np.random.default_rng(seed)
    y = np.array(["no", "yes"])[rng.integers(0, 2, m)]
    up = rng.normal(size=m) + 3 * (y == "yes")
    kind = np.where(y == "yes", rng.choice(["a", "b"], m, p=[0.9, 0.1]), rng.choice(["a", "b"], m, p=[0.2, 0.8]))
    frame = pd.DataFrame({"up": up, "kind": kind, "noise": rng.normal(size=m)})
    frame.loc[::10, "noise"] = np.nan
    return frame, y


@pytest.fixture(scope="module")
def result():
    return belief.select(*table(), 3, random_state=0)


def by_name(result):
    return {result.feature_names[each.feature]: each for each in result.distributions}


# --- the numbers ---


def test_distributions_equal_those_of_the_rows(result):
    X, y = table()
    drawn = by_name(result)
    assert set(drawn) == {"up", "kind", "noise"}
    for g, c in enumerate(["no", "yes"]):  # all rows are in the sample
        np.testing.assert_allclose(drawn["up"].quantiles[g], np.quantile(X["up"][y == c], SHARES))
        there = X["noise"][y == c].dropna()
        np.testing.assert_allclose(drawn["noise"].quantiles[g], np.quantile(there, SHARES))
        shares = [np.mean(X["kind"][y == c] == level) for level in drawn["kind"].levels]
        np.testing.assert_allclose(drawn["kind"].shares[g], shares)
    assert drawn["noise"].missing == pytest.approx(0.1)
    assert drawn["up"].missing == 0
    assert (drawn["kind"].discrete, drawn["up"].discrete) == (True, False)


def test_mean_ranks_with_ties_and_missing_values():
    np.testing.assert_allclose(mean_ranks(np.array([5.0, np.nan, 1.0, 5.0])), [0.75, np.nan, 0.0, 0.75])
    x = np.random.default_rng(0).normal(size=50)
    assert mean_ranks(x).mean() == pytest.approx(0.5)
    np.testing.assert_allclose(mean_ranks(x), x.argsort().argsort() / 49)


def named(task, *classes, p=1.0):
    return SimpleNamespace(task=task, classes=np.array(classes), p_univariate=[p], settings={"alpha": 0.05})


def portrayed(x, targets, target, discrete=False):
    sample = Sample(np.zeros(len(x), np.uint64), np.arange(len(x)), targets)
    summary = SimpleNamespace(m=len(x), missing=np.array([0.0]))
    values = SampledValues.read(
        np.array([0]), lambda rows, _: x[rows, None], sample, target, summary, np.array([discrete])
    )
    return values.describe()[0]


def test_describe_distributions_in_fifths_of_a_numeric_target():
    t = np.linspace(0, 1, 101)
    drawn = portrayed(t * 10, t, Numeric(101, np.linspace(0, 1, 21)))
    assert drawn.groups == [0, 1, 2, 3, 4]
    medians = [quantiles[2] for quantiles in drawn.quantiles]
    np.testing.assert_allclose(medians, [1, 3, 5, 7, 9], atol=0.2)


def test_describe_distributions_of_the_largest_classes():
    counts = np.arange(1, 21)
    targets = np.repeat(np.arange(20), counts)
    x = targets.astype(float)
    x[targets == 19] = np.nan
    drawn = portrayed(x, targets, Classes(np.arange(20), counts))
    assert drawn.groups == list(range(8, 19))


def test_distributions_from_files_and_blocks(result, tmp_path):
    X, y = table()
    path = tmp_path / "t.csv"
    X.assign(y=y).to_csv(path, index=False)
    streamed = belief.select(str(path), label="y", n_features_to_select=3, random_state=0)
    blocks = belief.select([X[:100], X[100:]], y, 3, random_state=0)
    for other in (streamed, blocks):
        for name, mine in by_name(result).items():
            assert by_name(other)[name].levels == mine.levels
            np.testing.assert_allclose(
                by_name(other)[name].quantiles or by_name(other)[name].shares, mine.quantiles or mine.shares
            )


def test_distributions_on_spark(result, spark):
    X, y = table()
    drawn = by_name(
        belief.select(spark.createDataFrame(X.assign(y=y)), label="y", n_features_to_select=3, random_state=0)
    )
    assert drawn["up"].quantiles == by_name(result)["up"].quantiles
    assert drawn["kind"].levels == ["level 1", "level 2"]
    np.testing.assert_allclose(drawn["kind"].shares, by_name(result)["kind"].shares)


# --- descriptions in words ---


def test_describe_direction(result):
    says = {name: describe_direction(result, each) for name, each in by_name(result).items()}
    assert says["up"] == "higher in yes"
    assert says["noise"] == "no univariate direction"
    assert says["kind"] == "'a': 93 % of yes, 22 % of no"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda t: t, "rises with the target"),
        (lambda t: -t, "falls as the target rises"),
        (lambda t: (t - 0.5) ** 2, "lowest for middle values of the target"),
        (lambda t: -((t - 0.5) ** 2), "highest for middle values of the target"),
        (lambda t: np.arange(len(t)) % 2.0, "no univariate direction"),
    ],
)
def test_describe_direction_with_a_numeric_target(make, says):
    t = np.linspace(0, 1, 101)
    drawn = portrayed(make(t), t, Numeric(101, np.linspace(0, 1, 21)))
    assert describe_direction(named("regression"), drawn) == says


def test_describe_direction_with_three_classes():
    y = np.repeat([0, 1, 2], 30)
    drawn = portrayed(y + np.tile(np.linspace(0, 0.5, 30), 3), y, Classes(np.arange(3), np.full(3, 30)))
    assert describe_direction(named("classification", "p", "q", "r"), drawn) == "highest in r, lowest in p"


def test_describe_direction_of_separated_classes_without_one_direction():
    y = np.repeat([0, 1], 50)
    middle = np.where(y, np.tile([-3.0, 3.0], 50), np.linspace(-0.5, 0.5, 100))
    drawn = portrayed(middle, y, Classes(np.arange(2), np.full(2, 50)))
    assert describe_direction(named("classification", "no", "yes"), drawn) == "more spread out in yes than in no"
    many = np.tile(np.arange(25.0), 4) + 25 * y
    drawn = portrayed(many, y, Classes(np.arange(2), np.full(2, 50)), discrete=True)
    assert describe_direction(named("classification", "no", "yes", p=0.5), drawn) == "no univariate direction"
    assert describe_direction(named("classification", "no", "yes", p=0.01), drawn).startswith("differs with the target")


def test_numbers_with_two_values_have_shares():
    y = np.repeat([0, 1], 50)
    drawn = portrayed(np.where(y, 2.0, np.tile([1.0, 2.0], 50)), y, Classes(np.arange(2), np.full(2, 50)))
    assert (drawn.levels, drawn.shares) == (["1", "2"], [[0.5, 0.5], [0.0, 1.0]])
    assert not drawn.discrete
    assert drawn.with_level_names(None) == drawn
    assert describe_direction(named("classification", "no", "yes"), drawn) == "'1': 50 % of no, 0 % of yes"


# --- the report ---


def test_render_shows_distributions(result):
    said = collect_content(result)
    assert [each["feature"] for each in said["distributions"]] == result.selected_names
    noise = next(each for each in said["distributions"] if each["feature"] == "noise")
    assert (noise["type"], noise["missing"]) == ("numbers", "10 %")
    page = render(result)
    assert page.count('<article class="distribution">') == 3
    assert "numbers, 10 % missing: no univariate direction" in page


def test_collect_content_lists_all_other_features():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    X = rng.normal(size=(100, 30))
    X[:, 7] += 2 * y
    found = belief.select(X, y, 1, random_state=0)
    said = collect_content(found)
    assert [line.feature for line in said["selected"]] == ["x7"]
    assert sorted(line.feature for line in said["others"]) == sorted({*found.feature_names} - {"x7"})
    relevance = [line.relevance for line in said["others"][1:]]
    assert relevance == sorted(relevance, reverse=True)


def test_collect_content_has_names_to_copy():
    X, y = table()
    X = X.rename(columns={"up": 'a "quoted" \\ name\nin two lines'})
    said = collect_content(belief.select(X, y, 2, random_state=0))
    assert eval(said["names_python"]) == [*belief.select(X, y, 2, random_state=0).selected_names]
    assert len(said["names_text"].splitlines()) == 2


def test_render_a_numeric_target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    found = belief.select(X, X[:, 0] * 10 + rng.normal(size=200), 2, random_state=0)
    page = render(found)
    assert "regression, target from -" in page
    assert "0 classes" not in page
    assert "<summary>Classes</summary>" not in page
    quantiles = collect_content(found)["target"]["quantiles"]
    assert [share for share, _ in quantiles] == ["0 %", "5 %", "25 %", "50 %", "75 %", "95 %", "100 %"]
    assert "rises with the target" in page
    assert "regression, target from -" in found._repr_html_()


# --- plots ---


def axes():
    return Figure(layout="constrained").add_subplot()


def test_plot_distribution_shows_quantiles(result):
    ax = belief.plot.distribution(result, "up", axes())
    boxes = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    np.testing.assert_allclose(boxes, [(q[1], q[3]) for q in by_name(result)["up"].quantiles])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["no", "yes"]
    assert "higher in yes" in ax.get_xlabel()
    assert "10 % missing" in belief.plot.distribution(result, "noise", axes()).get_xlabel()


def test_plot_distribution_of_a_feature_that_was_not_selected():
    found = belief.select(*table(), 1, random_state=0)
    left = next(name for name in found.feature_names if name not in found.selected_names)
    ax = belief.plot.distribution(found, left, axes())
    assert "the distributions of the first 100 selected features" in " ".join(ax.texts[0].get_text().split())


# --- notebooks ---


def test_repr_html_shows_bars_and_distributions(result):
    html = result._repr_html_()
    assert html.count('aria-label="relevance') == 3
    assert html.count('aria-label="yes: ') == 3
    lines = result.explain()
    assert lines._repr_html_().count('aria-label="relevance') == len(lines)
    assert "selected, from" not in lines._repr_html_()
