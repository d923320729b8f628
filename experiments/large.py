"""The paper's large problems (its tables 9 and 10): F1 of two classifiers after selecting 10, 50 and 100 features.

    BELIEF_DATA=folder python experiments/large.py
    python experiments/large.py --quick
    python experiments/large.py --files folder --max-rows 1000000

The first takes the slices of real sets in the folder and look-alikes of epsilon, ECBDL14, url and kddb, and writes the
tables into docs/experiments/large.md. `--quick` asks less, of small look-alikes only; `--files` asks all, of those of
the four real sets whose files are in the folder; both print their tables. Every answer is kept as it comes, in
large.jsonl (or, in the current folder, large-quick.jsonl and large-files.jsonl), so an interrupted run resumes. Needs
Java.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from common import HOME, Answers, data_home, paper, publish
from large_copies import relevant_found
from large_judges import JUDGES, Marks, marks_of, on_disk, with_mllib
from large_page import OVERSAMPLED, markdown
from large_tasks import SEED, TEST, Array, Data, Task, look_alikes, real_files, slices
from large_ways import PAPERS, Grid, Way

import belief

ANSWERS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "experiments" / "large.md"
BINS = 10
AT_ONCE = 4  # selections that are judged: Spark's jobs on a small table wait more than they compute
FULL = {"epsilon": 200_000, "ecbdl14": 240_000, "url": (500_000, 800_000), "kddb": (500_000, 800_000)}
QUICK = {"epsilon": 4_000, "ecbdl14": 4_000, "url": (5_000, 10_000), "kddb": (5_000, 10_000)}


class Study:
    """The answers about some data sets; what is asked for and not kept is computed."""

    def __init__(self, tasks: dict[str, Task], file: Path, grid: Grid = PAPERS) -> None:
        self.tasks, self.grid = tasks, grid
        self.answers = Answers(file, configuration(tasks, grid))
        self._at: tuple[str, int] | None = None
        self._data: Data | None = None
        self._making = Lock()  # selections are judged several at a time

    def data(self, name: str, fold: int) -> Data:
        """The rows of one fold; those of the last one asked for are kept."""
        with self._making:
            if self._at != (name, fold) or self._data is None:
                self._data = None
                self._at, self._data = (name, fold), self.tasks[name].make(fold)
            return self._data

    def shape(self, name: str) -> dict[str, Any]:
        """The size of a data set, and F1 of saying the most frequent class always."""

        def measure() -> dict[str, Any]:
            data = self.data(name, 0)
            most = np.bincount(data.truth).argmax()
            return {
                "rows": len(data.y), "test": len(data.truth), "features": data.X.shape[1],
                "share": round(float(np.mean(data.truth == most)), 4),
                "always": marks_of(data.truth, np.full(len(data.truth), most)),
            }  # fmt: skip

        return self.answers.get(f"{name} | shape", measure)

    def sizes(self, name: str) -> list[int]:
        """How many features are asked for: fewer than there are."""
        return [n for n in self.grid.sizes if n < self.shape(name)["features"]]

    def selected(self, name: str, fold: int, way: Way, n: int) -> Array:
        """The features a method selects."""
        asked = max(self.sizes(name)) if way.greedy else n
        key = f"{name} | fold {fold} | {way} | {asked}"
        found = self.answers.get(key, lambda: timed(lambda: self.select(name, fold, way, asked)))
        return np.array(found["selected"].split(), int)[:n]

    def select(self, name: str, fold: int, way: Way, n: int) -> Array:
        """The same, computed."""
        data = self.data(name, fold)
        if way.method != "mRMR":
            settings = paper(data.X, data.discrete) | way.settings
            return belief.select(
                data.X, data.y, n, **settings, discrete_features=data.discrete, random_state=SEED
            ).selected  # fmt: skip
        from mrmr_on_spark import mrmr_frame

        nominal = np.flatnonzero(data.discrete)
        with on_disk(data.X, data.y) as df:
            return mrmr_frame(
                df, features="features", label="label", n=n, bins=BINS, discrete_features=nominal
            ).selected

    def on_spark(self, name: str) -> dict[str, Any]:
        """Whether the Spark engine selects the same as the one that is used here, once for each data set."""

        def compare() -> dict[str, Any]:
            from belief.method.settings import Settings
            from belief.spark.frames import select_frame

            way = Way("BELIEF + mCR", self.grid.k[-1], self.grid.batches[0])
            n, data = self.grid.sizes[0], self.data(name, 0)
            chosen = paper(data.X, data.discrete) | way.settings
            settings = Settings(n_features_to_select=n, random_state=SEED, **chosen)
            nominal = np.flatnonzero(data.discrete)
            with on_disk(data.X, data.y) as df:
                found = timed(lambda: select_frame(
                    df, features="features", label="label", settings=settings, discrete_features=nominal
                ).selected)  # fmt: skip
            same = found["selected"].split() == [str(j) for j in self.selected(name, 0, way, n)]
            return {"same": same, "seconds": found["seconds"]}

        return self.answers.get(f"{name} | on Spark", compare)

    def copies(self, name: str) -> dict[str, Any]:
        """What oversampling does to the selection."""
        return self.answers.get(f"{name} | copies", lambda: relevant_found(self.shape(name)["rows"]))

    def judged(self, name: str, fold: int, selected: Array | None) -> Marks:
        """What the classifiers make of some features, or of all."""
        which = "all features" if selected is None else f"judged {digest(selected)}"
        return self.answers.get(
            f"{name} | fold {fold} | {which}",
            lambda: with_mllib(self.data(name, fold), None if selected is None else np.sort(selected)),
        )

    def judge(self, name: str, fold: int, chosen: list[Array]) -> None:
        """What the classifiers make of all features and of some selections, several at a time."""
        different = {digest(selected): selected for selected in chosen}.values()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda selected: self.judged(name, fold, selected), [None, *different]))

    def marks(self, name: str, way: Way | None, n: int = 0, kind: str = "f1") -> dict[str, float | None]:
        """F1 by classifier, the mean over the folds; with all features if no way is given; "macro" is another kind."""
        folds = range(self.tasks[name].folds)
        every = [self.judged(name, f, None if way is None else self.selected(name, f, way, n)) for f in folds]
        return {judge: mean([marks[judge] for marks in every], kind) for judge in JUDGES}

    def compute(self) -> None:
        """All answers, data set by data set, fold by fold, so that each is made once."""
        for name, task in self.tasks.items():
            sizes = self.sizes(name)
            for fold in range(task.folds):
                chosen = [self.selected(name, fold, way, n) for way in self.grid.ways() for n in sizes]
                self.judge(name, fold, chosen)
            self.on_spark(name)
            if name == OVERSAMPLED:
                self.copies(name)


def published() -> Study:
    """The study whose tables are in the page."""
    return Study({**slices(), **look_alikes(**FULL)}, ANSWERS)


def mean(marks: list[dict[str, float] | None], kind: str) -> float | None:
    """The mean of F1, where it is known."""
    known = [mark[kind] for mark in marks if mark is not None]
    return round(float(np.mean(known)), 4) if known else None


def digest(selected: Array) -> str:
    """A short name for a set of features."""
    return blake2b(np.sort(selected).astype("<i8").tobytes(), digest_size=8).hexdigest()


def timed(select: Callable[[], Array]) -> dict[str, Any]:
    """What was selected, and in how many seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than neighbours; Spark's of pandas
        found = select()
    return {"selected": " ".join(map(str, found.tolist())), "seconds": round(time.perf_counter() - start, 2)}


def configuration(tasks: dict[str, Task], grid: Grid) -> dict[str, Any]:
    """All that the answers depend on."""
    return {
        "seed": SEED, "bins": BINS, "test": TEST, **grid.describe(),
        "tasks": {name: task.describe() for name, task in tasks.items()},
    }  # fmt: skip


def main(words: list[str]) -> None:
    """Compute what is missing, and write the page or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small look-alikes only; prints the tables")
    parser.add_argument("--files", help="a folder with files of epsilon, ECBDL14, url or kddb; prints the tables")
    parser.add_argument("--max-rows", type=int, help="of each of those files, read only so many rows")
    asked = parser.parse_args(words)
    if asked.quick or asked.files:
        tasks = real_files(asked.files, asked.max_rows) if asked.files else look_alikes(**QUICK)
        if not tasks:
            raise SystemExit(
                f"{asked.files} has no file of epsilon, ECBDL14, url or kddb; name the folder they are in."
            )
        grid = PAPERS if asked.files else Grid((10, 50), (10,), (0.25,))
        study = Study(tasks, Path("large-files.jsonl" if asked.files else "large-quick.jsonl"), grid)
        study.compute()
        print(markdown(study))
        return
    if data_home() is None:
        raise SystemExit("Set BELIEF_DATA to the folder with the public data sets, or take --quick.")
    study = published()
    study.compute()
    publish(PAGE, "large", markdown(study))
    print(f"{PAGE} is written.")


if __name__ == "__main__":
    main(sys.argv[1:])
