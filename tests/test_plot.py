"""Plots show the numbers of the result and literal names, and restore the settings of matplotlib."""

import dataclasses
import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import belief

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from belief import plot  # noqa: E402
from belief.report.text import NO_REDUNDANCY, ONE_BATCH, ONE_FEATURE, shorten_distinct  # noqa: E402
from belief.result.deferred import FeaturePair  # noqa: E402

EACH = [plot.ranking, plot.relevance_redundancy, plot.redundancy, plot.convergence, plot.timings]
NASTY = "cost in $ and $$x^2$"
LONG = "a_name_that_goes_on_and_on_until_nobody_reads_it_2"


def select(n=5, **settings):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 200)
    X = rng.standard_normal((200, 8))
    X[:, 0] += 2 * y
    X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(200)  # redundant with feature 0
    X[:, 2] += 1.2 * y
    table = pd.DataFrame(X, columns=[NASTY, LONG, "height", "a\nb", "北", "c", "d", "e"])
    return belief.select(table, y, n, random_state=0, **settings)


@pytest.fixture(scope="module")
def result():
    return select()


@pytest.fixture(scope="module")
def by_mcr():
    return select(**belief.PAPER)


def axes():
    return Figure(layout="constrained").add_subplot()


def said(ax):
    return " ".join(" ".join(text.get_text() for text in ax.texts).split())


@pytest.mark.parametrize("draw", EACH)
def test_plots_use_the_given_axes_and_restore_settings(result, draw):
    before, ax = dict(matplotlib.rcParams), axes()
    assert draw(result, ax) is ax
    assert ax.has_data()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("draw", EACH)
def test_plots_create_a_figure(result, draw):
    from matplotlib import pyplot

    ax = draw(result)
    assert pyplot.gcf() is ax.figure
    pyplot.close(ax.figure)


def test_ranking_shows_names_literally_and_shortened(result):
    ax = plot.ranking(select(2, redundancy=None), axes(), max_name_length=20)
    labels = [label.get_text().split("\u2002")[0] for label in ax.get_yticklabels()]
    assert NASTY in labels
    assert "a_name_tha…ads_it_2" not in labels  # all 20 characters are used
    assert "a_name_tha…eads_it_2" in labels
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(file, format="svg")
    assert f">{NASTY}" in file.getvalue().decode()  # as mathematics, it would fail or look different


@pytest.mark.parametrize(("inches", "letters"), [(3.7, 15), (7.2, 30)])
def test_ranking_legend_fits_next_to_long_names(result, inches, letters):
    figure = Figure((inches, 3), layout="constrained")
    ax = plot.ranking(result, figure.add_subplot(), max_name_length=letters)
    with pytest.warns(UserWarning, match="Glyph"):  # the font lacks 北
        figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1


def test_redundancy_label_fits_on_a_narrow_screen():
    """The figure is the narrow one of the report, names are as long as allowed, and some features are not shown."""
    result = select()
    many = dataclasses.replace(
        result,
        selected=np.arange(8).repeat(3)[:16] % 8,
        redundancy=np.pad([[1.0, 0.9], [0.9, 1.0]], (0, 14)) + np.diag([0.0, 0.0, *np.ones(14)]),
    )
    with matplotlib.rc_context({"font.size": 8.5}):
        figure = Figure((3.7, 3), layout="constrained")
        ax = plot.redundancy(many, figure.add_subplot(), max_name_length=15)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")
            figure.draw_without_rendering()
    assert "not shown: 14 of 16" in ax.get_xlabel()
    box = ax.xaxis.label.get_window_extent()
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1


def labelled(ax):
    return {container.get_label(): container for container in ax.containers}


def test_ranking_shows_relevance_error_and_score(result):
    ax = plot.ranking(result, axes())
    lines = result.explain()[:5]
    noise = [line for line in lines if line["p_value"] > 0.05]
    sure = [line for line in lines if line["p_value"] <= 0.05]
    assert noise
    assert sure
    drawn = labelled(ax)
    for name, which in (("relevance", sure), ("not significant", noise)):
        assert [bar.get_width() for bar in drawn[name]] == pytest.approx([line["relevance"] for line in which])
        assert [bar.get_y() + bar.get_height() / 2 for bar in drawn[name]] == [line["rank"] - 1 for line in which]
    assert all(bar.get_facecolor()[3] == 0 for bar in drawn["not significant"])  # hollow bars
    assert [bar.get_width() for bar in drawn["score"]] == pytest.approx(result.scores)
    ends = [segment[:, 0] for segment in drawn["± 2 standard errors"][2][0].get_segments()]
    expected = [(r["relevance"] - 2 * r["error"], r["relevance"] + 2 * r["error"]) for r in lines]
    np.testing.assert_allclose(ends, expected)
    low, high = ax.get_xlim()
    assert low < np.min(ends) <= np.max(ends) < high


def test_relevance_redundancy_marks_selected_features():
    result = select(2)
    ax = plot.relevance_redundancy(result, axes())
    lines = result.explain()
    left, taken = ax.collections
    for points, rows in ((taken, lines[:2]), (left, lines[2:])):
        known = [r for r in rows if r["unique_share"] is not None]
        offsets = np.asarray(points.get_offsets())
        np.testing.assert_allclose(
            offsets[np.isfinite(offsets).all(axis=1)], [[100 * r["unique_share"], r["relevance"]] for r in known]
        )
    shown = {text.get_text() for text in ax.texts}
    names = dict(zip([r["feature"] for r in lines], shorten_distinct([r["feature"] for r in lines], 28), strict=True))
    assert f"1 {names[lines[0]['feature']]}" in shown
    assert shown <= {f"{r['rank']} {names[r['feature']]}" if r["rank"] else names[r["feature"]] for r in lines}


def test_names_in_relevance_redundancy_do_not_overlap():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.standard_normal((300, 30)) + y[:, None] * np.linspace(1, 0.2, 30)
    names = [f"a_feature_with_a_long_name_{j}" for j in range(30)]
    ax = plot.relevance_redundancy(belief.select(pd.DataFrame(X, columns=names), y, 15, random_state=0), axes())
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) > 5
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_redundancy_shows_agreement_and_frames_groups(result):
    ax = plot.redundancy(result, axes(), level=0.3)
    ranks = [int(label.get_text()) - 1 for label in ax.get_xticklabels()]
    cells = ax.collections[0].get_array()
    assert (cells.min(), ax.collections[0].get_clim()) == (0, (0, 1))  # from 0 to 1, whatever the values are
    for row, b in enumerate(ranks):
        for column, a in enumerate(ranks):
            assert cells[row, column] == result.redundancy[a, b]
            assert cells[row, column] == pytest.approx(result.redundancy[b, a])
    twins = select(8, theta=0.0)  # all features, sorted by relevance alone
    ax = plot.redundancy(twins, axes())
    ranks = [int(label.get_text()) - 1 for label in ax.get_xticklabels()]
    (frame,) = [p for p in ax.patches if isinstance(p, Rectangle)]
    first, size = round(frame.get_y() + 0.5), round(frame.get_height())
    assert {twins.selected_names[i] for i in ranks[first : first + size]} == {NASTY, LONG}


def test_plots_of_mcr(by_mcr):
    given = by_mcr
    drawn = labelled(plot.ranking(given, axes()))
    assert [bar.get_width() for bar in drawn["score"]] == pytest.approx(given.scores)
    assert "± 2 standard errors" in drawn
    ax = plot.relevance_redundancy(given, axes())
    assert ax.get_xlabel() == "mCR subtracted from the relevance"
    lines = given.explain()[: len(given.selected)]
    np.testing.assert_allclose(
        ax.collections[1].get_offsets(), [[r["relevance"] - r["score"], r["relevance"]] for r in lines]
    )
    heat = plot.redundancy(given, axes())
    assert "mCR" in heat.get_xlabel()
    assert not heat.patches  # mCR is relative, so it cannot define groups


@pytest.fixture(scope="module")
def exclusive():
    """Return the result for a table whose target is the exclusive or of two columns."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice([-1.0, 1.0], (300, 4)), columns=["left", "right", "c", "d"])
    return belief.select(X, np.where(X["left"] * X["right"] > 0, "same", "other"), 3, random_state=0)


def test_interactions_join_partners(exclusive, result):
    ax = plot.interactions(exclusive, axes())
    assert {"left", "right"} <= {text.get_text() for text in ax.texts}
    joined = [line for line in ax.lines if len(line.get_xdata()) == 2]
    assert len(joined) == len(exclusive.interactions) >= 1
    assert "No interactions were found" in said(plot.interactions(result, axes()))


def test_interaction_shows_rows_by_class(exclusive, result):
    ax = plot.interaction(exclusive, "left", axes())
    assert {ax.get_xlabel(), ax.get_ylabel()} == {"left", "right"}
    drawn = {points.get_label(): np.asarray(points.get_offsets()) for points in ax.collections}
    assert {*drawn} == {"same", "other"}
    assert sum(map(len, drawn.values())) == 250
    assert (np.sign(drawn["same"]).prod(axis=1) == 1).all()
    assert (np.sign(drawn["other"]).prod(axis=1) == -1).all()
    assert len(np.unique(drawn["same"][:, 0])) > 50  # equal values are spread
    assert "this feature is not in one of these pairs" in said(plot.interaction(result, 2, axes()))


def test_interaction_with_a_numeric_target():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (400, 4))
    target = rng.random(400).round(3)
    found = belief.select(X, X[:, 0] + rng.standard_normal(400), 2, random_state=0)
    pair = FeaturePair([0, 1], X[:, :2].T.tolist(), [[], []], target.tolist())
    ax = plot.interaction(dataclasses.replace(found, pairs=[pair]), 0, axes())
    assert len(ax.collections) == 5
    assert ax.get_legend().get_texts()[0].get_text() == "lowest fifth"


def test_score_by_size_marks_the_automatic_choice():
    curve = belief.SizeCurve(
        sizes=[1, 2, 4], scores=[0.5, 0.8, 0.81], spread=[0.1, 0.02, 0.01], automatic=2, all_features=0.7,
        n_features=12, folds=5, seed=0, task="regression", seconds=1.0,
    )  # fmt: skip
    ax = plot.score_by_size(curve, axes())
    drawn = {line.get_label(): line for line in ax.lines}
    assert drawn["mean over the folds"].get_ydata().tolist() == curve.scores
    assert drawn["auto: 2"].get_xdata() == [2, 2]
    assert drawn["all 12 features"].get_ydata() == [0.7, 0.7]
    assert ax.get_ylabel() == "R²"
    assert len(plot.score_by_size(dataclasses.replace(curve, all_features=None), axes()).lines) == 2


def test_ranking_has_the_line_of_significance(result):
    ax = plot.ranking(result, axes())
    (line,) = [line for line in ax.lines if line.get_label() == "significant (q < 0.05)"]
    at = line.get_xdata()[0]
    lines = result.explain()[:5]
    assert all((row.relevance > at) == row.is_significant for row in lines)
    untested = plot.ranking(select(2, significance=None), axes())
    assert not [line for line in untested.lines if "significant" in line.get_label()]


def test_by_class_shows_the_separation_of_each_class(exclusive):
    ax = plot.by_class(exclusive, axes())
    cells = np.asarray(ax.collections[0].get_array())
    separations = exclusive.separations[:, exclusive.selected].T
    np.testing.assert_allclose(cells, np.clip(separations / exclusive.separations.max(), 0, 1))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["other", "same"]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    numeric = belief.select(X, X[:, 0] + rng.standard_normal(200), 2, random_state=0)
    assert "no relevance by class" in said(plot.by_class(numeric, axes()))


def test_stability_shows_the_share_of_half_samples(result):
    studied = select(3, stability=20)
    ax = plot.stability(studied, axes())
    widths = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bars in ax.containers for bar in bars}
    frequency = np.sort(studied.stability.frequency)[::-1]
    assert [widths[place] for place in sorted(widths)] == pytest.approx(frequency[: len(widths)])
    assert "was not computed" in said(plot.stability(result, axes()))


def test_convergence_follows_the_history(result):
    ax = plot.convergence(result, axes())
    lines = [line for line in ax.lines if line.get_linestyle() == "-"]
    assert len(result.history) == 4
    for t, batch in enumerate(result.history.tolist()):
        listed = [j for j in batch if j in result.selected]
        places = {j: place for place, j in enumerate([*listed, *(set(result.selected) - set(listed))], 1)}
        for line, j in zip(lines, result.selected, strict=True):
            if j in listed:
                assert line.get_ydata()[t] == places[j]


def test_plots_mention_omitted_features(result):
    for draw in EACH[:4]:
        assert "the first 3 of 5 selected features" in draw(result, axes(), top=3).get_xlabel()
        assert "first" not in draw(result, axes()).get_xlabel()


def test_plots_without_data_show_a_sentence(result):
    alone = select(redundancy=None, batch_size=1.0)
    assert said(plot.redundancy(alone, axes())) == NO_REDUNDANCY
    assert said(plot.relevance_redundancy(alone, axes())) == NO_REDUNDANCY
    assert said(plot.convergence(alone, axes())) == ONE_BATCH
    assert said(plot.redundancy(select(1), axes())) == ONE_FEATURE
    assert "score" not in labelled(plot.ranking(alone, axes()))  # relevance only


def test_ranking_keeps_notebooks_interactive(result, tmp_path):
    """The backend of a notebook makes matplotlib interactive when the first figure loads it; ours may be the first."""
    (tmp_path / "notebook_backend.py").write_text(
        "import matplotlib\nfrom matplotlib.backends.backend_agg import *\nmatplotlib.interactive(True)\n"
    )
    saved = tmp_path / "result.json"
    saved.write_text(json.dumps(result.to_dict()))
    program = (
        f"import json, belief, matplotlib\nresult = belief.Result.from_dict(json.load(open({str(saved)!r})))\n"
        "before = matplotlib.rcParams['text.parse_math']\nbelief.plot.ranking(result)\n"
        "print(matplotlib.is_interactive(), matplotlib.rcParams['text.parse_math'] == before)"
    )
    there = {"MPLBACKEND": "module://notebook_backend", "PYTHONPATH": f"{tmp_path}:{Path(belief.__file__).parents[1]}"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **there})
    assert run.stdout.split() == ["True", "True"], run.stderr


# --- long names ---

ROOM = "measurement_of_the_average_temperature_in_room_{}_during_the_whole_night_of_the_experiment"
LONG_NAMES = {
    "in the middle": [ROOM.format(i) for i in (1, 2, 13)],
    "in two places": [f"{'p' * 20}{x}{'q' * 40}{y}{'r' * 20}" for x in "ab" for y in "cd"],
    "at the end": ["long_prefix_" * 4 + end for end in ("one", "two")],
    "by their length": ["n" * n for n in (60, 61, 62, 20)],
    "everywhere": ["".join(x) for x in np.random.default_rng(0).choice(list("ab"), (30, 90))],
}


@pytest.mark.parametrize("names", LONG_NAMES.values(), ids=LONG_NAMES)
@pytest.mark.parametrize("letters", [28, 16])
def test_shorten_distinct_keeps_names_different(names, letters):
    out = shorten_distinct([*names, names[0]], letters)
    assert out[-1] == out[0]
    assert len(set(out)) == len(names)
    assert max(map(len, out)) <= letters


def test_shorten_distinct_shows_the_differences():
    texts = shorten_distinct(LONG_NAMES["in the middle"], 28)
    assert all(part in text for part, text in zip(("_1_", "_2_", "_13_"), texts, strict=True))
    assert shorten_distinct(["short", LONG], 20) == ["short", "a_name_tha…eads_it_2"]
