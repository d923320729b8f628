"""The experiment on numeric targets: products are found, and the page agrees with the stored answers."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from common import is_published

FILE = Path(__file__).parents[1] / "experiments" / "regression.py"


@pytest.fixture(scope="module")
def regression():
    return importlib.import_module(FILE.stem)


@pytest.fixture(scope="module")
def kept(regression):
    found = regression.Answers(regression.CELLS, {"seeds": regression.SEEDS, "folds": regression.FOLD_SEEDS})
    assert found.answers, "regression.jsonl has answers of another configuration: run experiments/regression.py again"
    return found


def test_the_published_page_is_that_of_the_answers(regression, kept):
    for text in regression.page(kept).values():
        assert is_published(regression.PAGE, text)


def test_what_the_page_says_in_words(regression, kept):
    def mean(method):
        return np.mean([regression.mean(kept, f"found | {method} | {kind} | ") for kind in regression.KINDS])

    assert mean("BELIEF") >= 0.97
    assert all(mean(other) < mean("BELIEF") for other in regression.METHODS if other != "BELIEF")
    for kind in regression.NOISES:
        assert regression.mean(kept, f"noise | {kind} | ", "p05") <= 0.08 + 1e-9
    speeds = [kept.answers[f"speed | {m} x {F}"] for m, F in regression.SIZES]
    assert max(speeds) <= 1.1

    def cost(data):  # R² lost by selecting features, each with the better model
        every, some = (
            max(regression.mean(kept, f"worth | {way} | {data} | ", x) for x in regression.MODELS)
            for way in (None, "auto")
        )
        return every - some

    diabetes, california = map(cost, regression.DATA)
    words = " ".join(regression.PAGE.read_text().split())
    assert f"numeric targets take {min(speeds):.2f} to {max(speeds):.2f} times as long" in words
    assert f"falls by {diabetes:.3f} on diabetes and rises by {-california:.3f} on the California-like data" in words
    assert diabetes <= 0.02
    assert california <= 0.02


@pytest.mark.parametrize("kind", ["product and a linear term, 2,000 x 60", "exp of the product, 2,000 x 60"])
def test_products_are_found_and_a_test_of_single_columns_does_not_find_them(regression, kind):
    assert regression.found("BELIEF", kind, 100) == 1.0
    assert regression.found("F test", kind, 100) < 1.0


@pytest.mark.smoke
def test_a_product_is_found(regression):
    assert regression.found("BELIEF", "product and a linear term, 2,000 x 60", 101) == 1.0
