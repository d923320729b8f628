"""The rival schemes of the paper as scikit-learn selectors. test_experiments_contest.py tests their selections."""

import numpy as np
import pandas as pd
import pytest
from rivals import CleanedRelief, GramSchmidtRelief, KMeansRelief, Simba

SCHEMES = [KMeansRelief, GramSchmidtRelief, CleanedRelief, Simba]


@pytest.mark.smoke
@pytest.mark.parametrize("kind", SCHEMES)
def test_names_missing_values_and_constants(kind):
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"] * 30)
    table = pd.DataFrame({"one": 1.0, "colour": np.where(y == "no", "red", "blue"), "noise": rng.random(60)})
    table.loc[::7, "noise"] = None
    table.loc[::11, "colour"] = None
    found = kind(3, random_state=0).fit(table, y)
    assert found.selected_.tolist() == [1, 2, 0]
    assert found.scores_[0] == 0
    assert found.classes_.tolist() == ["no", "yes"]
    again = kind(1, random_state=0).fit(table, y)
    assert again.get_feature_names_out().tolist() == ["colour"]
    np.testing.assert_array_equal(again.scores_, found.scores_)
