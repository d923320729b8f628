"""public_data.load: shapes, classes and known relevant features of published data sets, and missing files."""

import bz2

import numpy as np
import pytest
from public_data import load, names

import belief

SHAPES = {
    "Corral100": (32, 99), "Parity3+3": (64, 12), "SD3": (75, 4060), "Led25n10": (50, 24), "Monk3": (122, 6),
    "covtype_10K": (10_000, 54), "kddcup_10K": (10_000, 41), "ECBDL14_1K": (1_000, 631), "RELATHE": (1_427, 4_322),
    "ECBDL14_test_1K": (1_000, 631), "lung": (73, 325), "lymphoma": (96, 4_026),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_load_shapes(name, data_home):
    data = load(name, data_home)
    assert data.X.shape == SHAPES[name]
    assert len(data.y) == SHAPES[name][0]
    assert data.discrete.shape == (SHAPES[name][1],)
    assert data.name == name


CLASSES = {  # the number of rows of each class
    "colon": {-1: 40, 1: 22}, "leukemia": {-1: 47, 1: 25}, "lung": {1: 6, 2: 5, 3: 5, 4: 16, 5: 7, 6: 13, 7: 21},
    "lymphoma": {1: 46, 2: 10, 3: 9, 4: 11, 5: 6, 6: 6, 7: 4, 8: 2, 9: 2},
    "ECBDL14_1K": {0: 500, 1: 500}, "ECBDL14_test_1K": {0: 536, 1: 464},
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_load_classes(name, data_home):
    found, counts = np.unique(load(name, data_home).y, return_counts=True)
    assert dict(zip(found.astype(int).tolist(), counts.tolist(), strict=True)) == CLASSES[name]


def test_relevant_features_determine_the_class(data_home):
    corral, xor, parity = (load(name, data_home) for name in ("Corral100", "XOR100", "Parity3+3"))
    a, b, c, d = (corral.X[:, group[0]].astype(int) for group in corral.relevant)
    assert np.array_equal(corral.y, (a & b) | (c & d))
    assert (corral.X[:, 5] == corral.y).sum() == 24  # an irrelevant feature that equals the class in 24 of 32 rows
    assert np.array_equal(xor.y, xor.X[:, [g[0] for g in xor.relevant]].sum(axis=1) % 2)
    for member in (0, 1):  # one feature of each group is enough
        assert np.array_equal(parity.y, parity.X[:, [g[member] for g in parity.relevant]].sum(axis=1) % 2)
    assert parity.redundant.tolist() == [3, 4, 5]


def test_load_mixed_columns(data_home):
    data = load("kddcup_10K", data_home, max_rows=700)
    assert data.X.shape == (700, 41)
    assert np.flatnonzero(data.discrete).tolist() == [1, 2, 3, 6, 11, 20, 21]
    assert [str(t) for t in data.X.schema.types[:5]] == ["double", "string", "string", "string", "double"]
    assert set(data.y) == {"negative", "positive"}
    with pytest.warns(UserWarning, match="rows are copies of another row"):  # identical connections
        assert len(belief.select(data.X, data.y, 5, discrete_features=data.discrete, random_state=0).selected) == 5


def test_load_sparse_rows(data_home):
    data = load("a9a", data_home, max_rows=1_000)
    assert sum(X.shape[0] for X in data.X) == len(data.y) == 1_000
    whole = load("a9a", data_home)
    assert {X.shape[1] for X in whole.X} == {123}
    assert np.array_equal(whole.X[0][:1_000].toarray(), data.X[0].toarray())


def test_load_large_libsvm_files(tmp_path):
    dense = "".join(f"{c} " + " ".join(f"{j}:{0.01 * j}" for j in range(1, 2001)) + "\n" for c in (1, -1, -1))
    (tmp_path / "epsilon_normalized.bz2").write_bytes(bz2.compress(dense.encode()))
    (tmp_path / "url_combined").write_text("+1 4:0.5 3231961:1\n-1 1:1\n")
    epsilon, url = load("epsilon", tmp_path), load("url", tmp_path)
    assert [X.shape for X in epsilon.X] == [(3, 2000)]
    assert np.allclose(epsilon.X[0][0, :3], [0.01, 0.02, 0.03])
    assert epsilon.y.tolist() == [1, -1, -1]
    assert load("epsilon", tmp_path, max_rows=2).y.tolist() == [1, -1]
    assert url.X[0].shape == (2, 3_231_961)
    assert url.X[0].indices.tolist() == [3, 3_231_960, 0]
    assert url.y.tolist() == [1, -1]


ARFF = """% made up
@relation ECBDL14
@attribute separation real
@ATTRIBUTE 'PredSS_r1_-1' {H,E,C,X}
@attribute level {0,1,X}
@attribute class {0,1}

@data
6,H,0,0
7.5,X,1,1
8,C,1,0
"""


@pytest.mark.smoke
def test_load_arff_with_tabs_comments_and_missing_values(tmp_path):
    text = ARFF.replace("@attribute ", "@attribute\t").replace("7.5,X,1,1", "% one more\n?,X,1,1\n2,?,1,0")
    (tmp_path / "ECBDL14.arff").write_text(text)
    data = load("ECBDL14", tmp_path)
    assert data.X.column_names == ["separation", "PredSS_r1_-1", "level"]
    assert data.X.column(0).to_pylist() == [6, None, 2, 8]
    assert data.X.column(1).to_pylist() == ["H", "X", None, "C"]
    assert data.y.tolist() == [0, 1, 0, 0]
    (tmp_path / "ECBDL14.arff").write_text(ARFF + "9,H,0\n")
    with pytest.raises(ValueError, match=r"ECBDL14\.arff: 4 columns were expected"):
        load("ECBDL14", tmp_path)


@pytest.mark.parametrize("name", ["ECBDL14", "ECBDL14_test"])
def test_load_arff_with_nominal_columns(name, tmp_path):
    (tmp_path / f"{name}.arff").write_text(ARFF)
    data = load(name, tmp_path)
    assert data.X.column_names == ["separation", "PredSS_r1_-1", "level"]
    assert data.X.to_pylist()[1] == {"separation": 7.5, "PredSS_r1_-1": "X", "level": "1"}
    assert data.discrete.tolist() == [False, True, True]
    assert data.y.tolist() == [0, 1, 0]
    assert load(name, tmp_path, max_rows=2).X.shape == (2, 3)


def test_load_from_folder_in_environment_variable(monkeypatch, tmp_path):
    (tmp_path / "Corral.csv").write_text("0,0,1,1,0,1,1\n1,0,1,0,0,0,0\n")  # not in a subfolder
    monkeypatch.setenv("BELIEF_DATA", str(tmp_path))
    assert load("Corral").y.tolist() == [1, 0]
    monkeypatch.delenv("BELIEF_DATA")
    with pytest.raises(ValueError, match="Pass home, or set BELIEF_DATA"):
        load("Corral")


@pytest.mark.parametrize("name", names())
def test_missing_data_set_file_raises(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file \S+ .* in .*: it is (in|part of|one of) "):
        load(name, tmp_path)


INVALID = {
    "unknown": ({"name": "covtyp_10K"}, "no data set 'covtyp_10K' .did you mean 'covtype_10K'"),
    "no rows": ({"name": "Corral", "max_rows": 0}, "max_rows must be None or an integer of at least 1; got 0"),
    "narrow": ({"name": "ECBDL14"}, "ECBDL14.csv: 632 columns were expected; .*got 3"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_arguments_raise(case, tmp_path):
    options, message = INVALID[case]
    (tmp_path / "ECBDL14.csv").write_text("1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match=message):
        load(home=tmp_path, **options)
