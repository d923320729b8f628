"""The pictures show the numbers of the result, take names as they are, and leave matplotlib as it was."""

import io

import numpy as np
import pandas as pd
import pytest

import belief

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from belief import plot  # noqa: E402
from belief.report.words import NO_REDUNDANCY, ONE_BATCH, ONE_FEATURE  # noqa: E402

EACH = [plot.ranking, plot.relevance_redundancy, plot.redundancy, plot.settling, plot.timings]
NASTY = "cost in $ and $$x^2"
LONG = "a_name_that_goes_on_and_on_until_nobody_reads_it_2"


def select(n=5, **settings):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 200)
    X = rng.standard_normal((200, 8))
    X[:, 0] += 2 * y
    X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(200)  # repeats 0
    X[:, 2] += 1.2 * y
    table = pd.DataFrame(X, columns=[NASTY, LONG, "height", "a\nb", "北", "c", "d", "e"])
    return belief.select(table, y, n, random_state=0, **settings)


@pytest.fixture(scope="module")
def result():
    return select()


def axes():
    return Figure(layout="constrained").add_subplot()


def said(ax):
    return " ".join(" ".join(text.get_text() for text in ax.texts).split())


@pytest.mark.parametrize("draw", EACH)
def test_it_draws_on_the_axes_given_and_leaves_matplotlib_as_it_was(result, draw):
    before, ax = dict(matplotlib.rcParams), axes()
    assert draw(result, ax) is ax
    assert ax.has_data()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("draw", EACH)
def test_it_makes_a_figure_where_there_is_none(result, draw):
    from matplotlib import pyplot

    ax = draw(result)
    assert pyplot.gcf() is ax.figure
    pyplot.close(ax.figure)


def test_names_are_taken_as_they_are_and_shortened(result):
    ax = plot.ranking(result, axes(), letters=20)
    labels = [label.get_text().split("\u2002")[0] for label in ax.get_yticklabels()]
    assert NASTY in labels
    assert "a_name_tha…ads_it_2" not in labels  # 20 letters, not 19
    assert "a_name_tha…eads_it_2" in labels
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(file, format="svg")
    assert f">{NASTY}" in file.getvalue().decode()  # as mathematics it would be an error, or another text


def test_the_ranking_shows_relevance_and_score(result):
    ax = plot.ranking(result, axes())
    relevance, paid = ax.containers
    assert [bar.get_width() for bar in relevance] == pytest.approx(result.relevance[result.selected])
    assert [bar.get_x() for bar in paid] == pytest.approx(result.scores)
    assert [bar.get_x() + bar.get_width() for bar in paid] == pytest.approx(result.relevance[result.selected])
    np.testing.assert_allclose(ax.collections[0].get_offsets()[:, 0], result.scores)


def test_the_scatter_tells_the_selected_from_those_left(result):
    ax = plot.relevance_redundancy(result, axes())
    lines = result.explain()
    left, taken = ax.collections
    for points, rows in ((taken, lines[:5]), (left, lines[5:])):
        np.testing.assert_allclose(points.get_offsets(), [[r["paid"], r["relevance"]] for r in rows])
    assert sorted(text.get_text() for text in ax.texts) == ["1", "2", "3", "4", "5"]


def test_the_heat_map_shows_what_each_repeats_and_frames_the_twins(result):
    ax = plot.redundancy(result, axes())
    ranks = [int(label.get_text()) - 1 for label in ax.get_xticklabels()]
    cells = ax.collections[0].get_array()
    for row, b in enumerate(ranks):
        for column, a in enumerate(ranks):
            assert cells[row, column] == result.redundancy[a, b]  # what b repeats of a
    (frame,) = [p for p in ax.patches if isinstance(p, Rectangle)]
    first, size = round(frame.get_y() + 0.5), round(frame.get_height())
    assert {result.selected_names[i] for i in ranks[first : first + size]} >= {NASTY, LONG}


def test_a_level_that_nothing_reaches_frames_nothing(result):
    assert not plot.redundancy(result, axes(), level=1.01).patches


def test_the_bump_chart_follows_the_history(result):
    ax = plot.settling(result, axes())
    lines = [line for line in ax.lines if line.get_linestyle() == "-"]
    assert len(result.history) == 4
    for t, batch in enumerate(result.history.tolist()):
        listed = [j for j in batch if j in result.selected]
        places = {j: place for place, j in enumerate([*listed, *(set(result.selected) - set(listed))], 1)}
        for line, j in zip(lines, result.selected, strict=True):
            if j in listed:
                assert line.get_ydata()[t] == places[j]


def test_features_left_off_are_mentioned(result):
    for draw in EACH[:4]:
        assert "the first 3 of 5 selected features" in draw(result, axes(), top=3).get_xlabel()
        assert "first" not in draw(result, axes()).get_xlabel()


def test_where_there_is_nothing_to_draw_a_sentence_says_so(result):
    alone = select(redundancy=None, batch_size=1.0)
    assert said(plot.redundancy(alone, axes())) == NO_REDUNDANCY
    assert said(plot.relevance_redundancy(alone, axes())) == NO_REDUNDANCY
    assert said(plot.settling(alone, axes())) == ONE_BATCH
    assert said(plot.redundancy(select(1), axes())) == ONE_FEATURE
    assert len(plot.ranking(alone, axes()).containers) == 1  # relevance only
