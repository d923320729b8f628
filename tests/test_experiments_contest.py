"""The comparison of selectors in experiments/contest.py: its data, scores and ranks, and whether the pages agree."""

import importlib
import zlib
from pathlib import Path

import numpy as np
import pytest
from pages import kept_answers, words_of

HOME = Path(__file__).parents[1] / "experiments"
MODULES = ("choices", "common", "contest", "contest_marks", "contest_page", "contest_selectors", "contest_tasks",
           "contest_worker", "registry", "steps")  # fmt: skip


@pytest.fixture(scope="module")
def it():
    """Return the modules of the experiment, by name."""
    return {name: importlib.import_module(name) for name in MODULES}


@pytest.fixture(scope="module")
def kept(it):
    """Return the published answers."""
    return kept_answers(it["contest"])


# --- data ---


@pytest.mark.parametrize("names", ["seventeen", "thirty", "made"])
def test_a_third_of_every_source_is_kept_aside_by_its_names(it, names):
    every = {"seventeen": it["steps"].DATA, "thirty": it["registry"].MORE, "made": it["contest_tasks"].KIND}[names]
    aside = {*it["contest_marks"].ASIDE, *it["contest_marks"].MADE_ASIDE} & set(every)
    assert len(aside) == int(np.ceil(len(every) / 3))
    largest = max(zlib.crc32(name.encode()) for name in aside)
    assert all((zlib.crc32(name.encode()) <= largest) == (name in aside) for name in every)


def test_what_is_kept_aside_does_not_change_unseen(it):
    six = {"lung", "SD1", "ECBDL14_test_1K", "kddcup_10K", "Madelon", "leukemia"}
    ten = {"ionosphere", "ad_data", "segment", "vehicle", "bands", "ischemic_stroke", "twonorm", "movement_libras",
           "mlc_churn", "cells"}  # fmt: skip
    assert len(it["contest_marks"].ASIDE) == 16
    assert set(it["contest_marks"].ASIDE) == six | ten


def test_shuffled_columns_take_their_truth_along(it):
    Data, tasks = it["choices"].Data, it["contest_tasks"]
    X = np.arange(12.0).reshape(2, 6)
    data = Data(X, np.array([0, 1]), np.arange(6) == 4, ((0, 3), (5,)))
    moved = tasks.shuffled(data, np.random.default_rng(1))
    assert not np.array_equal(moved.X, X)
    assert [sorted(moved.X[0, list(group)]) for group in moved.relevant] == [[0, 3], [5]]
    assert moved.X[0, moved.discrete].tolist() == [4]


def test_precision_counts_copies_and_recall_what_is_shown(it):
    Data, found = it["choices"].Data, it["contest_tasks"].found
    data = Data(np.zeros((2, 6)), np.zeros(2), np.zeros(6, bool), ((0, 1), (2,), (3,)))
    assert found(data, [0, 1, 5]) == {"precision": pytest.approx(2 / 3), "recall": pytest.approx(1 / 3)}
    assert found(data, [1, 2, 3]) == {"precision": 1, "recall": 1}


def test_the_pairs_beside_a_rare_class_say_something_only_together(it):
    tasks = it["contest_tasks"]
    assert tasks.PAIRED == ["XOR, 10 % rare", "XOR and shifts, 3 % rare"]
    for each in tasks.PAIRED:
        data = tasks.planted_truth(each, 7)
        (a,), (b,) = data.relevant[:2]
        rare = data.y == 1
        assert np.array_equal(data.X[:, a] * data.X[:, b] < 0, rare)
        assert tasks.pair_found(data, [a, b]) == {"together": 1}
        assert tasks.pair_found(data, [b, *(j for (j,) in data.relevant[2:])]) == {"together": 0.5}


# --- selectors ---


NAMES = [  # repeated here, so that the selectors do not change unnoticed
    "BELIEF", "BELIEF, as in the paper", "BELIEF, no redundancy", "F test", "mutual information",
    "ReliefF (fast-select)", "MultiSURF (fast-select)", "mRMR (ours)", "mRMR (mrmr-selection)",
    "L1 logistic regression", "random forest", "SVM-RFE", "RELIEF, K-means", "RELIEF, Gram-Schmidt", "RELIEF, cleaned",
    "SIMBA", "TuRF (fast-select)", "Boruta", "permutation importance", "ReliefF (scikit-rebate)",
]  # fmt: skip


@pytest.mark.smoke
def test_all_take_part(it):
    assert list(it["contest_selectors"].SELECTORS) == NAMES


# --- scores ---


class Here:
    """A worker that runs selectors in this process and records its tasks."""

    def __init__(self, it):
        self.it, self.asked = it, []

    def ask(self, name, data, n):
        self.asked.append((name, len(data.y), n))
        return self.it["contest_worker"].answer(name, data, n)


OURS = ["mRMR (ours)", "RELIEF, K-means", "RELIEF, Gram-Schmidt", "RELIEF, cleaned", "SIMBA"]


@pytest.mark.parametrize("each", ["wine", "breast cancer"])
@pytest.mark.parametrize("name", OURS)
def test_published_selections_come_out_again(it, kept, name, each):
    judge = it["contest"].Judge(it["contest_tasks"].public(each))
    judge.marks = lambda fold, chosen: [0.0]
    again = it["contest"].judged(Here(it), judge, name)
    assert again["selected"] == kept.answers[f"{each} | {name}"]["selected"]


@pytest.mark.filterwarnings("ignore")
def test_features_are_judged_by_rows_that_did_not_select_them(it):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(60) % 2)
    noise = it["choices"].Data(rng.standard_normal((60, 2000)), y, np.zeros(2000, bool))
    worker = Here(it)
    answer = it["contest"].judged(worker, it["contest"].Judge(noise), "F test")
    assert worker.asked == [("F test", 40, 50)] * 3
    assert np.shape(answer["f1"]["10"]) == np.shape(answer["f1"]["50"]) == (3, 3)
    assert np.mean([answer["f1"][n] for n in ("10", "50")]) < 0.6
    assert all(len(set(fold.split())) == 10 for fold in answer["selected"])


def test_only_missing_answers_are_computed_and_none_after_one_that_did_not_end(it, monkeypatch, tmp_path):
    contest, asked = it["contest"], []

    class Late:
        def __init__(self, limit):
            self.close = lambda: None

        def ask(self, name, data, n):
            asked.append((name, n))
            return {"more than": 30}

    monkeypatch.setattr(contest, "Worker", Late)
    answers = it["common"].Answers(tmp_path / "contest.jsonl", {})
    for _ in range(2):
        contest.compute(answers, ["F test"], ["wine", "XOR"], (0, 1))
    assert asked == [("F test", 10), ("F test", 2)]
    assert answers.answers == {"wine | F test": {"more than": 30}, "XOR | F test": {"more than": 30}}


# --- ranks ---


def some(it, tmp_path, marks):
    """Return answers with these F1 scores by data set and selector; None if the selector did not finish in time."""
    answers = it["common"].Answers(tmp_path / "contest.jsonl", {})
    for (each, name), x in marks.items():
        known = {"f1": {"10": [[x, x, x]]}, "seconds": {"10": [0.5]}}
        answers.answers[f"{each} | {name}"] = {"more than": 30} if x is None else known
    return answers


def test_ranks_are_those_of_a_naive_count(it, tmp_path):
    rng = np.random.default_rng(3)
    names, sets = ["BELIEF", "F test", "SIMBA", "Boruta"], ["wine", "lung", "colon"]
    marks = {(each, name): float(rng.integers(0, 4)) / 4 for each in sets for name in names}
    marks["lung", "Boruta"] = None
    table = it["contest_marks"].ranks(some(it, tmp_path, marks), names, sets)
    for row, each in zip(table, sets, strict=True):
        values = [-1 if marks[each, name] is None else marks[each, name] for name in names]
        naive = [1 + sum(y > x for y in values) + (sum(y == x for y in values) - 1) / 2 for x in values]
        assert row.tolist() == naive
    assert table[1][3] == 4


def test_friedmans_statistic_and_nemenyis_difference(it):
    ranks = np.array([[1, 2, 3, 4], [1, 3, 2, 4], [2, 1, 3, 4], [1, 2, 4, 3], [1, 2, 3, 4]], float)
    n, k = ranks.shape
    naive = 12 * n / (k * (k + 1)) * ((ranks.mean(axis=0) ** 2).sum() - k * (k + 1) ** 2 / 4)
    assert it["contest_marks"].friedman(ranks)[0] == pytest.approx(naive)
    published = {2: 1.960, 5: 2.728, 10: 3.164}  # Demšar (2006), table 5
    for k, q in published.items():
        far = it["contest_marks"].critical_difference(k, 17)
        assert far == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 17)), rel=1e-3)


# --- the published pages ---


def test_the_published_page_is_that_of_the_answers(it, kept):
    assert it["common"].is_published(it["contest"].PAGE, it["contest_page"].markdown(kept))


B, F, MRMR, L1, FOREST = "BELIEF", "F test", "mRMR (ours)", "L1 logistic regression", "random forest"
NONE, SURF, RELIEFF, RFE, MI = NAMES[2], NAMES[6], NAMES[5], "SVM-RFE", "mutual information"
TURF = "TuRF (fast-select)"
TOLD = [  # sentences of docs/choosing.md, the kind of their numbers, and the selectors
    ("F1 is {} for BELIEF, {} for the F test, {} for mRMR and {} for a random forest.", "F1", [B, F, MRMR, FOREST]),
    ("interactions: TuRF {}, BELIEF {}, MultiSURF {}, random forest {}, F test {}, mRMR {} |", "interactions",
     [TURF, B, SURF, FOREST, F, MRMR]),
    ("imbalance: BELIEF {}, L1 logistic regression {}, MultiSURF {}, F test {}, ReliefF {} |", "imbalance",
     [B, L1, SURF, F, RELIEFF]),
    ("copies: BELIEF {}, mRMR {}, L1 logistic regression {}, MultiSURF {}, F test {} |", "copies",
     [B, MRMR, L1, SURF, F]),
    ("recall on all synthetic tables: BELIEF {}, TuRF (the second best) {}, F test {} |", "all", [B, TURF, F]),
    ("recall on weak signals: L1 {}, mRMR {}, BELIEF {}, F test {} |", "weak signals", [L1, MRMR, B, F]),
    ("recall on noise: F test {}, mRMR {}, BELIEF {};", "noise", [F, MRMR, B]),
    ("SD2: F test {}, BELIEF {};", "SD2", [F, B]),
    ("SD3: F test {}, BELIEF {};", "SD3", [F, B]),
    ("leukemia: F test {}, BELIEF {};", "leukemia", [F, B]),
    ("lung: F test {}, BELIEF {} |", "lung", [F, B]),
    ("Madelon: TuRF {}, ReliefF {}, BELIEF without redundancy {}, BELIEF {};", "Madelon", [TURF, RELIEFF, NONE, B]),
    ("on a similar table: ReliefF {}, BELIEF without redundancy {}, BELIEF {} |", "Madelon, any of 20",
     [RELIEFF, NONE, B]),
    ("recall is {} for BELIEF, {} for mRMR and {} for SVM-RFE.", "ECBDL14-like", [B, MRMR, RFE]),
    ("RELATHE: mRMR {}, random forest {}, BELIEF {}, F test {} |", "RELATHE", [MRMR, FOREST, B, F]),
    ("gradient boosting on ten features: BELIEF {}, random forest {}, F test {}, mRMR {} |", (10, 2),
     [B, FOREST, F, MRMR]),
    ("5-NN on fifty features: BELIEF without redundancy {}, BELIEF {}, F test {}, SVM-RFE {} |", (50, 1),
     [NONE, B, F, RFE]),
    ("(without imputation) {}, ReliefF and MultiSURF (with medians imputed) {}, mRMR and F test {} |", "missing",
     [B, RELIEFF, MRMR]),
    ("(without imputation) {}, ReliefF and MultiSURF (with medians imputed) {}, mRMR and F test {} |", "missing",
     [B, SURF, F]),
    ("F test {}, ReliefF {}, MultiSURF {}, mRMR {}, random forest {}, SVM-RFE {}, mutual information {} |", "time",
     [F, RELIEFF, SURF, MRMR, FOREST, RFE, MI]),
]  # fmt: skip


def measured(it, kept, what, name):
    """Return a number of the comparison, formatted as on the page."""
    m, tasks = it["contest_marks"], it["contest_tasks"]
    every = m.taking_part(kept)
    if isinstance(what, tuple):
        return f"{m.mean_f1(kept, name, every, size=what[0], judge=what[1]):.3f}"
    if what in tasks.MADE or what == "all":
        return f"{m.mean_truth(kept, name, tasks.MADE.get(what, tasks.KIND)):.2f}"
    if what in tasks.KIND:
        return f"{m.truth(kept, name, what):.2f}"
    if what == "time":
        return f"{m.slower(kept, name, every):.2g}"
    return f"{m.mean_f1(kept, name, every if what == 'F1' else [what]):.3f}"


def test_what_the_page_says_of_choosing_is_what_was_found(it, kept):
    words = words_of(HOME.parent / "docs" / "choosing.md")
    sentences = [text.format(*(measured(it, kept, what, x) for x in some)) for text, what, some in TOLD]
    assert [x for x in sentences if x not in words] == []
    assert f"on {len(it['contest_marks'].taking_part(kept))} public tables" in words
    assert "on 24 synthetic tables" in words
    every = it["contest_tasks"].KIND
    others = [x for x in it["contest_marks"].asked(kept, every) if not x.startswith("BELIEF")]
    assert max(others, key=lambda x: it["contest_marks"].mean_truth(kept, x, every)) == TURF
