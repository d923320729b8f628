"""The experiments on significance: the tables match their names, and the page shows the stored answers."""

import importlib

import numpy as np
import pytest
from pages import kept_answers
from scipy import stats


@pytest.fixture(scope="module")
def it():
    names = ("significance", "significance_tables", "significance_page", "common")
    return {name.removeprefix("significance_"): importlib.import_module(name) for name in names}


def test_tables_have_their_kinds(it):
    tables = it["tables"]
    made = {name: tables.make(name, maker, 0) for name, maker in tables.CALIBRATION.items()}
    assert len(made) >= 36
    assert np.bincount(made["10 rare rows, lognormal"].y).tolist() == [990, 10]
    assert made["60 rows x 5,000 of noise"].X.shape == (60, 5000)
    assert made["nominal noise"].discrete.all()
    assert len(np.unique(made["bootstrap sample of noise"].X, axis=0)) < 700
    absent = np.isnan(made["missing by class, 3 of 60"].X)
    y = made["missing by class, 3 of 60"].y
    assert [absent[y == c].mean() for c in (0, 1)] == pytest.approx([0.1, 0.4], abs=0.01)
    copies = made["noise and copies of columns"].X
    assert np.corrcoef(copies[:, 0], copies[:, 60])[0, 1] > 0.95


def test_tables_are_others_for_each_seed_and_the_same_again(it):
    tables = it["tables"]
    name = "nominal, one strong"
    first, again, other = (tables.make(name, tables.CALIBRATION[name], seed) for seed in (0, 0, 1))
    assert np.array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)


def test_no_column_of_an_interaction_is_relevant_by_itself(it):
    tables = it["tables"]
    p = []
    for seed in range(20):
        for name, maker in tables.INTERACTIONS.items():
            made = tables.make(name, maker, seed)
            p += list(stats.f_oneway(*(made.X[made.y == c][:, made.relevant] for c in (0, 1))).pvalue)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_relevant_columns_differ_and_others_do_not(it):
    tables = it["tables"]
    for name in ("1,000 x 200, 30 shifts of 0.2", "counts, 10 of 100", "numeric: counts, 10 of 60"):
        q = [it["significance"].univariate_q(tables.make(name, tables.POWER[name], seed)) for seed in range(5)]
        relevant = tables.make(name, tables.POWER[name], 0).relevant
        found = np.array(q) < 0.05
        assert found[:, relevant].mean() > 0.3
        assert np.delete(found, relevant, axis=1).mean() < 0.03


@pytest.mark.smoke
def test_answers_count_what_is_found(it, tmp_path, monkeypatch):
    significance, tables = it["significance"], it["tables"]
    table = tables.make("4 normal, one strong", tables.CALIBRATION["4 normal, one strong"], 0)
    answer = significance.tested(table)
    assert answer["neighbours"][0] <= answer["combined"][0] == 3
    assert answer["found"][1:] == [1, 1]
    monkeypatch.setattr(significance, "cells", lambda part: [("4 normal, one strong", lambda rng: table, len_of)])
    answers = it["common"].Answers(tmp_path / "some.jsonl", {})
    significance.compute(answers, ("calibration",), 2)
    assert answers.answers == {f"calibration | 4 normal, one strong | seed={seed}": 1000 for seed in (5000, 5001)}


def len_of(table):
    return len(table.y)


def test_the_page_is_that_of_the_answers(it):
    significance, page = it["significance"], it["page"]
    for mark, shown in page.tables(kept_answers(significance)).items():
        assert it["common"].is_published(significance.PAGE, f"<!-- {mark} -->\n{shown}\n<!-- /{mark} -->"), mark
