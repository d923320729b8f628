"""Damaged or edited checkpoints and results raise an error of one line, without a traceback."""

import hashlib
import itertools
import json
import random
import re
import time
from contextlib import closing, contextmanager

import numpy as np
import pytest
from conftest import refused
from effort import THOROUGH

import belief
from belief.cli import commands as cli
from belief.data.labels import read_labels
from belief.data.table import open_table
from belief.engines.block import table_engine
from belief.engines.checkpoint import CHECKSUM_SIZE, DESCRIPTION, Checkpoint
from belief.engines.resources import Resources
from belief.method.algorithm import make_pairs, make_search
from belief.method.sampling import batches
from belief.method.settings import Settings
from belief.method.targets import make_class_target
from belief.result.serialization import compute_checksum

EDITS = 10_000 if THOROUGH else 500
M, F = 40, 5


def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, M)
    X = rng.standard_normal((M, F))
    X[:, 2] += y
    return X, y


def run(notes, **options):
    return belief.select(*table(), 2, random_state=0, checkpoint=notes, n_neighbors=3, **options)


def edited(data, rng):
    """Return the bytes with one random edit: some bytes are changed, deleted, inserted or copied to another place."""
    data, at, n = bytearray(data), rng.randrange(len(data)), rng.choice((1, 1, 1, 2, 8, 100))
    how = rng.randrange(5)
    if how == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif how == 1:
        data[at : at + n] = rng.randbytes(n)
    elif how == 2:
        del data[at : at + n]
    elif how == 3:
        data[at:at] = rng.randbytes(n)
    else:
        data[at : at + n] = data[(there := rng.randrange(len(data))) : there + n]
    return bytes(data)


def overwrite(file, data):
    """Overwrite a file without truncating it first, which is slow on some disks."""
    with file.open("r+b") as out:
        out.write(data)
        out.truncate()


def answer(call):
    """Return the result of the call, or the message of its ValueError."""
    try:
        return call()
    except ValueError as error:
        return str(error)


# --- a checkpoint ---


class Reader:
    """A reader of checkpoint files, which makes the same checks as `run` with an existing checkpoint."""

    def __init__(self, folder):
        X, y = table()
        self.settings = Settings(n_features_to_select=2, random_state=0, n_neighbors=3)
        opened = open_table(X)
        classes, labels = read_labels(y, M, "classification").encode_classes()
        with table_engine(
            opened.source, make_class_target(classes, labels), labels, opened.discrete, Resources()
        ) as engine:
            self.summary, self.target = engine.describe(), engine.target
            self.fingerprint = engine.fingerprint()
            sample = engine.sample(self.target.counts, 0).in_order("balanced", M)
        self.search = make_search(self.settings, self.target, M, 0)
        with self._begun(folder) as (notes, _):
            found = notes.load_neighbours(self.search, M)
        cut = batches(M, self.settings.batch_size)
        self.pairs = [make_pairs(sample, found, part, self.target) for part in cut]

    @contextmanager
    def _begun(self, folder):
        with closing(Checkpoint(folder)) as notes:
            yield notes, notes.begin(self.settings, self.summary, self.target, lambda: self.fingerprint)

    def of(self, folder, name):
        """Return the contents of a checkpoint file, read as in a run that continues from the checkpoint."""
        with self._begun(folder) as (notes, seed):
            if name == "neighbours.npz":
                return list(vars(notes.load_neighbours(self.search, M)).values())
            if name == "sums.npz":
                tally, lists = notes.load_sums(self.pairs, F)
                return [*map(np.asarray, vars(tally).values()), *lists]
            return [np.array(seed)]


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noted") / "notes"
    run(folder)
    return folder, Reader(folder)


def copied(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_edited_checkpoint_is_refused_or_unchanged(noted, tmp_path):
    (folder, reader), rng = noted, random.Random(0)
    notes = copied(folder, tmp_path)
    files = {file: file.read_bytes() for file in notes.iterdir()}
    want, accepted = {file: reader.of(notes, file.name) for file in files}, 0
    for i in range(EDITS):
        file = rng.choice([*files])
        overwrite(file, edited(files[file], rng))
        got = answer(lambda file=file: reader.of(notes, file.name))
        if isinstance(got, str):
            assert re.fullmatch(rf"checkpoint {notes}[^\n]*\.", got), i
        else:
            accepted += 1
            assert all(np.array_equal(a, b) for a, b in zip(got, want[file], strict=True)), i
        overwrite(file, files[file])
    assert accepted < EDITS / 20  # for example inserted spaces


def reseal(folder, name, **changed):
    """Change the arrays of a file and recompute its checksum."""
    page = json.loads((folder / DESCRIPTION).read_text())
    page.pop("checksum")
    whose = hashlib.sha256(json.dumps(page, sort_keys=True).encode()).hexdigest()
    file = folder / f"{name}.npz"
    with file.open("rb") as raw:
        raw.seek(CHECKSUM_SIZE)
        with np.load(raw) as arrays:
            kept = {**{key: arrays[key] for key in arrays.files}, **changed}
    with file.open("w+b") as raw:
        notes = Checkpoint(folder)
        notes._run = whose
        notes._save(name, {key: x for key, x in kept.items() if x is not None}, raw)


OUT_OF_RANGE = {
    "row numbers too large": ("neighbours", {"row": np.full((M, 2, 3), 10**12)}),
    "row numbers below -1": ("neighbours", {"row": np.full((M, 2, 3), -7)}),
    "fractional row numbers": ("neighbours", {"row": np.zeros((M, 2, 3))}),
    "another shape": ("neighbours", {"d2": np.zeros((M, 2, 4))}),
    "NaN for a distance": ("neighbours", {"d2": np.full((M, 2, 3), np.nan)}),
    "no targets": ("neighbours", {"target": None}),
    "an unexpected array": ("neighbours", {"more": np.zeros(3)}),
    "feature numbers too large": ("sums", {"watched_0": np.array([0, 10**9])}),
    "a duplicate feature": ("sums", {"watched_0": np.array([1, 1])}),
    "a missing list": ("sums", {"watched_3": None}),
    "too many lists": ("sums", {"batches": np.array(10**15)}),
    "sums of other features": ("sums", {"total": np.zeros((4, F + 1))}),
    "NaN for a sum": ("sums", {"total": np.full((4, F), np.nan)}),
    "sums of other pairs": ("sums", {"n_pairs": np.array(3)}),
    "no sums": ("sums", {"total": None}),
    "strings instead of sums": ("sums", {"total": np.full((4, F), "a")}),
    "arrays instead of numbers": ("sums", {"n_pairs": np.zeros(3)}),
}


@pytest.mark.parametrize("damage", OUT_OF_RANGE)
def test_invalid_arrays_with_a_valid_checksum_are_refused(noted, tmp_path, damage):
    notes = copied(noted[0], tmp_path)
    name, changed = OUT_OF_RANGE[damage]
    reseal(notes, name, **changed)
    refused(f"{name}.npz is damaged: delete it to compute it again, or use restart=True", lambda: run(notes))


def test_file_of_another_run_is_refused(noted, tmp_path):
    notes = copied(noted[0], tmp_path)
    belief.select(*table(), 2, random_state=1, checkpoint=tmp_path / "other", n_neighbors=3)
    (notes / "sums.npz").write_bytes((tmp_path / "other" / "sums.npz").read_bytes())
    refused("sums.npz is damaged", lambda: run(notes))


def test_edited_description_is_refused(noted, tmp_path):
    notes = copied(noted[0], tmp_path)
    page = json.loads((notes / DESCRIPTION).read_text())
    for text in (json.dumps({**page, "seed": 5}), "[" * 100_000, '{"a":' * 100_000, "{}", "[]", "3", '"a"'):
        (notes / DESCRIPTION).write_text(text)
        refused("checkpoint.json is damaged: use restart=True", lambda: run(notes))


def test_restart_discards_the_checkpoint(noted, tmp_path, capsys):
    (tmp_path / "notes").mkdir()
    notes = copied(noted[0], tmp_path / "notes")
    want = run(None)
    (notes / "sums.npz").write_bytes(b"nothing")
    (notes / DESCRIPTION).write_text("{")
    (notes / "letter.txt").write_text("dear")
    again = run(notes, restart=True)
    np.testing.assert_array_equal(again.weights, want.weights)
    np.testing.assert_array_equal(run(notes).weights, want.weights)
    assert (notes / "letter.txt").read_text() == "dear"
    refused("restart=True needs a checkpoint", lambda: run(None, restart=True))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sums.npz").write_text("mine")
    refused("holds other files", lambda: run(tmp_path / "mine", restart=True))
    assert (tmp_path / "mine" / "sums.npz").read_text() == "mine"

    X, y = table()
    np.savez(tmp_path / "a.npz", X=X, y=y)
    command = ["select", str(tmp_path / "a.npz"), "--top", "2", "--seed", "0", "--quiet", "--checkpoint", str(notes)]
    assert cli.main(command) == 1
    assert "another folder, or --restart." in capsys.readouterr().err
    assert cli.main([*command, "--restart"]) == 0
    assert cli.main([*command[:-2], "--restart"]) == 2
    assert "--restart needs --checkpoint DIR" in capsys.readouterr().err


@pytest.mark.slow
def test_checkpoint_with_a_growing_sample(tmp_path, monkeypatch):
    """Neighbours saved for the first sample are not mistaken for neighbours of a larger one; the weights are right."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 30_000)
    X = rng.standard_normal((30_000, 20)) + np.repeat([0.4, 0.1, 0.0], [3, 2, 15]) * y[:, None]
    parquet.write_table(pa.table([*X.T, y], names=[*"abcdefghijklmnopqrst", "y"]), tmp_path / "a.parquet")
    monkeypatch.setattr(time, "monotonic", itertools.count(0, 60).__next__)  # to save after every block
    stream = belief.data.open_files([tmp_path / "a.parquet"], belief.data.ColumnSelection("y"))
    stream.files.max_batch_rows = 5_000
    options = {"n_features_to_select": 3, "random_state": 0, "significance": None}
    options["working_memory"] = 16  # too little to keep the rows
    noted = belief.select(stream, checkpoint=tmp_path / "notes", **options)
    assert 2000 < noted.sample_size < len(y)
    assert X.nbytes > 2**22  # so that the rows are not kept
    given = belief.select(stream, sample_size=noted.sample_size, **options)
    np.testing.assert_allclose(noted.weights, given.weights, rtol=1e-9)


# --- a result ---

STRANGE = [None, True, -1, 0, 2, 10**9, 10**30, 10**400, 0.5, float("nan"), float("inf"), "", "a", "1", [], [0], {}]
STRANGE += [[[1]], "mcr", "auto", "regression", {"a": 1}, [None], ["a"], [1, [2]]]


class File:
    """A stand-in for the path of a file, with the given contents."""

    def __init__(self, data):
        self.data = data

    def __fspath__(self):
        return "r.json"  # there is no such file

    def read_text(self, encoding):
        return self.data.decode(encoding)

    def __str__(self):
        return "r.json"


def read(data):
    """Read a result as the command line does."""
    return cli.read_result(File(data))


def said_in_one_line(answer):
    return re.fullmatch(r"r\.json: [^\n]*[^\n.]\.?", answer) and len(answer) < 400


@pytest.fixture(scope="module")
def result():
    return belief.select(*table(), 2, random_state=0, n_neighbors=3)


def timeless(result):
    return json.dumps({name: value for name, value in result.to_dict().items() if name != "timings"})


def reshaped(plain, rng):
    """Return the dictionary of this JSON text, with a random value edited, deleted or repeated."""
    plain = json.loads(plain)
    place = plain
    while True:
        keys = [*place] if isinstance(place, dict) else range(len(place))
        if not len(keys):
            return plain
        key = rng.choice(keys)
        if not isinstance(place[key], dict | list) or rng.random() < 0.4:
            break
        place = place[key]
    how = rng.randrange(4)
    if how == 0:
        del place[key]
    elif how == 1 and isinstance(place, list):
        place.append(place[key])
    elif how == 2 and isinstance(place[key], int | float):
        place[key] = -place[key] if rng.random() < 0.5 else place[key] * 10 + 1
    else:
        place[key] = rng.choice(STRANGE)
    return plain


def test_edited_result_is_refused_or_unchanged(result):
    text, rng = json.dumps(result.to_dict()), random.Random(0)
    want, accepted = timeless(result), 0
    for i in range(EDITS):
        data = edited(text.encode(), rng) if i % 2 else json.dumps(reshaped(text, rng)).encode()
        got = answer(lambda data=data: read(data))
        if isinstance(got, str):
            assert said_in_one_line(got), (i, got)
        else:
            accepted += 1
            assert timeless(got) == want, i
    assert accepted < EDITS / 5  # for example timings and spaces


def test_from_dict_validates_values_with_a_valid_checksum(result):
    """An edited result with a recomputed checksum raises an error, or can be explained like any other result."""
    text, rng = json.dumps(result.to_dict()), random.Random(1)
    accepted = 0
    for i in range(EDITS // 10):
        plain = reshaped(text, rng)
        plain["checksum"] = answer(lambda plain=plain: resealed(plain))
        got = answer(lambda plain=plain: read(json.dumps(plain).encode()))
        if isinstance(got, str):
            assert said_in_one_line(got), (i, got)
        else:
            accepted += 1
            assert all(got.explain(j).reason for j in range(len(got.weights)))
            assert len(str(got.explain())) > 0
            assert len(got.ranking) == len(got.weights)
    assert 0 < accepted < EDITS / 20


def resealed(plain):
    try:
        return compute_checksum(belief.Result, plain)
    except (TypeError, KeyError, OverflowError) as error:
        raise ValueError(error) from None


BY_HAND = {
    "selected": [[0, 99], [0, 0], ["a", "b"], [0.5, 1.0], [0], [-1, 0], [[0, 1]], None, 3, "abc", {}],
    "weights": [[1.0], ["1"] * F, [float("nan")] * F, [None] * F, [float("inf")] * F, 5],
    "watched": [[7], [0, 0]],
    "history": [[[99]], [[-2]], [1, 2], [[1], [1, 2]]],
    "scores": [[1.0], [[1.0, 2.0]]],
    "redundancy": [[[1.0]], [1.0, 2.0]],
    "n_rows": ["5", 1.5, -1, True, None],
    "settings": [3, {"redundancy": "none of them"}, {"theta": "a"}, []],
    "feature_names": [["a"], [1] * F, "abcde"],
    "timings": [{"a": "b"}, 3, {"a": float("nan")}],
    "task": ["regression", "guess", 3, []],
    "stop_reason": ["never", []],
    "priors": [[1.0]],
    "classes": [[None, 1], [[0, 1]], "ab", [0]],
}


@pytest.mark.parametrize("name", BY_HAND)
def test_from_dict_names_the_edited_field(result, name):
    for value in BY_HAND[name]:
        refused(
            f"^This result was edited or damaged: ({name}|se|scores|priors|class_weights|separations) is invalid",
            lambda value=value: belief.Result.from_dict({**result.to_dict(), name: value}),
        )


def test_cli_refuses_damaged_results(result, tmp_path, capsys):
    file, plain = tmp_path / "r.json", result.to_dict()
    for text, said in {
        "[" * 100_000: "was edited or damaged: it is nested too deeply",
        json.dumps(plain).replace("{}", "{" * 9).replace('"seed": 0', '"seed": ' + "9" * 5000): "limit",
        json.dumps({**plain, "seed": 1}): "was edited or damaged: its checksum does not match",
        json.dumps({k: v for k, v in plain.items() if k != "checksum"}): "It lacks checksum",
        json.dumps({**plain, "format": 0}): "has format 0, but this version",
    }.items():
        file.write_text(text)
        assert cli.main(["explain", str(file)]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(rf"belief: [^\n]*{said}[^\n]*\n", err), err
