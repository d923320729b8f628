"""Errors for targets with too many classes, and warnings of text columns that look like IDs or numbers."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest

import belief

M = 200
rng = np.random.default_rng(0)
Y = np.arange(M) % 2
X = rng.standard_normal((M, 3)) + Y[:, None]


@pytest.mark.parametrize("form", ["array", "csv"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([f"id{i}" for i in range(M)], "200 distinct values in 200 rows, too many .* IDs: choose another"),
        ([f"{i},5" for i in range(M)], "numbers stored as text: convert them, and pass task='regression'"),
        (
            [f"c{i // 3}" for i in range(3 * 1100)],
            "1,100 distinct values in 3,300 rows, too many for classes: .* many groups",
        ),
        ([i // 3 for i in range(3 * 1100)], "1,100 distinct values .* numbers: pass task='regression'"),
    ],
)
def test_too_many_classes_raise_with_advice(tmp_path, form, values, message):
    table = pd.DataFrame({"a": rng.standard_normal(len(values)), "b": 1.0 * np.arange(len(values)), "y": values})
    table.to_csv(tmp_path / "a.csv", index=False)
    X_or_file = tmp_path / "a.csv" if form == "csv" else table
    task = "auto" if isinstance(values[0], str) else "classification"
    with pytest.raises(ValueError, match=f"y.? has .*{message}") as error:
        belief.select(X_or_file, label="y", n_features_to_select=1, task=task)
    assert "\n" not in str(error.value)


def test_too_many_classes_raise_early(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"{i},id{i}\n" for i in range(50_000)))
    began = time.process_time()
    with pytest.raises(ValueError, match=r"'y' has 50,000 distinct values in 50,000 rows, .* IDs"):
        belief.select(tmp_path / "a.csv", label="y", n_features_to_select=1)
    assert time.process_time() - began < 10


def warnings_of(X_or_file, **options):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        belief.select(X_or_file, label="y", n_features_to_select=1, random_state=0, **options)
    return [str(w.message) for w in seen]


@pytest.mark.parametrize("form", ["frame", "parquet", "csv"])
def test_warns_once_of_ids_and_decimal_commas(tmp_path, form):
    table = pd.DataFrame(X, columns=[*"abc"]).assign(
        id=[None if i % 5 == 0 else f"k{i}" for i in range(M)],
        price=[f"{i % 90},{i % 10}" for i in range(M)],
        kind=np.array(["x", "y", "z"])[np.arange(M) % 3],
        code=[f"{i % 9}" for i in range(M)],
        y=Y,
    )
    table.to_parquet(tmp_path / "a.parquet")
    table.to_csv(tmp_path / "a.csv", index=False)
    X_or_file = table if form == "frame" else tmp_path / f"a.{form}"
    price, ids = warnings_of(X_or_file)
    assert ids.startswith("Column 'id' looks like an identifier, with a different value in nearly every row.")
    assert price.startswith("Column 'price' contains numbers stored as text, such as '0,0', and is treated as")
    assert warnings_of(X_or_file, discrete_features=["id", "price"]) == []


@pytest.mark.parametrize("settings", [{"redundancy": "mcr"}, {"redundancy": None}, {}])
def test_feature_of_relevance_0_is_not_called_the_most_relevant(settings):
    y = np.tile([0, 1], 20)
    told = np.where(np.arange(40) < 2, 1 - y, y).astype(float)
    result = belief.select(pd.DataFrame({"a": told, "b": told}), y, 2, random_state=0, **settings)
    first = result.explain()[0]
    assert (first["relevance"] > 0) == (first["reason"].startswith("selected: the most relevant feature"))
    assert first["relevance"] > 0 or "no feature is relevant" in first["reason"]
