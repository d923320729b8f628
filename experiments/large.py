"""Repeat the paper's large problems (tables 9 and 10): F1 of two classifiers with 10, 50 and 100 selected features.

    BELIEF_DATA=folder python experiments/large.py
    python experiments/large.py --quick
    python experiments/large.py --files folder --max-rows 1000000

The first command uses the slices of real data sets in the folder, and look-alikes: synthetic data with the shape of
epsilon, ECBDL14, url and kddb. It writes the tables into docs/experiments/large.md. `--quick` uses small look-alikes
and fewer settings. `--files` uses all settings on the paper's four data sets, and skips those without files in the
folder. `--quick` and `--files` only print their tables.

Each result is saved in large.jsonl as soon as it is computed, so an interrupted run continues where it stopped.
`--quick` and `--files` save their results in large-quick.jsonl and large-files.jsonl in the current folder. The script
needs Java.
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
AT_ONCE = 4  # number of selections to evaluate in parallel; Spark jobs on small tables mostly wait
# rows of the dense look-alikes; rows and features of the sparse ones
FULL = {"epsilon": 200_000, "ecbdl14": 240_000, "url": (500_000, 800_000), "kddb": (500_000, 800_000)}
QUICK = {"epsilon": 4_000, "ecbdl14": 4_000, "url": (5_000, 10_000), "kddb": (5_000, 10_000)}


class Study:
    """The results of the study, which are computed if they are not in the file.

    A way is a method with its settings. The judges are the classifiers that are trained on the selected features, and
    their marks are F1 scores on the test rows.

    Parameters
    ----------
    tasks : dict
        The data sets, by name.
    file : Path
        The file of the results.
    grid : Grid, optional
        The settings of the methods, and the numbers of features to select.
    """

    def __init__(self, tasks: dict[str, Task], file: Path, grid: Grid = PAPERS) -> None:
        self.tasks, self.grid = tasks, grid
        self.answers = Answers(file, configuration(tasks, grid))
        self._at: tuple[str, int] | None = None
        self._data: Data | None = None
        self._making = Lock()  # the threads that evaluate selections share the data

    def data(self, name: str, fold: int) -> Data:
        """Return the rows of one fold; only the last one stays in memory."""
        with self._making:
            if self._at != (name, fold) or self._data is None:
                self._data = None
                self._at, self._data = (name, fold), self.tasks[name].make(fold)
            return self._data

    def shape(self, name: str) -> dict[str, Any]:
        """Return the size of the first fold of a data set, and the F1 of always predicting its most frequent class.

        `share` is the share of this class among the test rows.
        """

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
        """Return the numbers of features to select that are smaller than the number of features of a data set."""
        return [n for n in self.grid.sizes if n < self.shape(name)["features"]]

    def selected(self, name: str, fold: int, way: Way, n: int) -> Array:
        """Return the features that a method selects."""
        asked = max(self.sizes(name)) if way.greedy else n  # one run of a greedy method serves all sizes
        key = f"{name} | fold {fold} | {way} | {asked}"
        found = self.answers.get(key, lambda: timed(lambda: self.select(name, fold, way, asked)))
        return np.array(found["selected"].split(), int)[:n]

    def select(self, name: str, fold: int, way: Way, n: int) -> Array:
        """Compute the features that a method selects, with the local engine, or with Spark for mRMR."""
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
        """Return whether the Spark engine selects the same features as the local engine, and its runtime.

        Only the first fold of each data set is compared, with one setting.
        """

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
        """Return how many relevant features are selected from oversampled tables with as many rows as this data set."""
        return self.answers.get(f"{name} | copies", lambda: relevant_found(self.shape(name)["rows"]))

    def judged(self, name: str, fold: int, selected: Array | None) -> Marks:
        """Return the F1 scores of the classifiers with the selected features, or with all if `selected` is None."""
        which = "all features" if selected is None else f"judged {digest(selected)}"
        return self.answers.get(
            f"{name} | fold {fold} | {which}",
            lambda: with_mllib(self.data(name, fold), None if selected is None else np.sort(selected)),
        )

    def judge(self, name: str, fold: int, chosen: list[Array]) -> None:
        """Evaluate all features and some selections with the classifiers, several in parallel."""
        different = {digest(selected): selected for selected in chosen}.values()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda selected: self.judged(name, fold, selected), [None, *different]))

    def marks(self, name: str, way: Way | None, n: int = 0, kind: str = "f1") -> dict[str, float | None]:
        """Return the F1 of each classifier, as the mean over the folds.

        If `way` is None, the classifiers use all features. `kind` is "f1" (weighted by class size) or "macro".
        """
        folds = range(self.tasks[name].folds)
        every = [self.judged(name, f, None if way is None else self.selected(name, f, way, n)) for f in folds]
        return {judge: mean([marks[judge] for marks in every], kind) for judge in JUDGES}

    def compute(self) -> None:
        """Compute all missing results, one fold after the other, because only one fold is in memory."""
        for name, task in self.tasks.items():
            sizes = self.sizes(name)
            for fold in range(task.folds):
                chosen = [self.selected(name, fold, way, n) for way in self.grid.ways() for n in sizes]
                self.judge(name, fold, chosen)
            self.on_spark(name)
            if name == OVERSAMPLED:
                self.copies(name)


def published() -> Study:
    """Return the study whose tables are in docs/experiments/large.md."""
    return Study({**slices(), **look_alikes(**FULL)}, ANSWERS)


def mean(marks: list[dict[str, float] | None], kind: str) -> float | None:
    """Return the mean F1 of the folds in which it is known, or None if it is unknown in all of them."""
    known = [mark[kind] for mark in marks if mark is not None]
    return round(float(np.mean(known)), 4) if known else None


def digest(selected: Array) -> str:
    """Return a short hash of a set of features; their order does not matter."""
    return blake2b(np.sort(selected).astype("<i8").tobytes(), digest_size=8).hexdigest()


def timed(select: Callable[[], Array]) -> dict[str, Any]:
    """Return the features that a function selects, as text, and its runtime in seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class may have fewer rows than n_neighbors; Spark warns about pandas
        found = select()
    return {"selected": " ".join(map(str, found.tolist())), "seconds": round(time.perf_counter() - start, 2)}


def configuration(tasks: dict[str, Task], grid: Grid) -> dict[str, Any]:
    """Return everything that the results depend on; if it changes, all results are discarded."""
    return {
        "seed": SEED, "bins": BINS, "test": TEST, **grid.describe(),
        "tasks": {name: task.describe() for name, task in tasks.items()},
    }  # fmt: skip


def main(words: list[str]) -> None:
    """Compute the missing results, and write the page or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use small look-alikes only, and print the tables")
    parser.add_argument("--files", help="use the paper's data sets in this folder, and print the tables")
    parser.add_argument("--max-rows", type=int, help="the maximum number of rows to read from each of these files")
    asked = parser.parse_args(words)
    if asked.quick or asked.files:
        tasks = real_files(asked.files, asked.max_rows) if asked.files else look_alikes(**QUICK)
        if not tasks:
            raise SystemExit(
                f"{asked.files} has no file of epsilon, ECBDL14, url or kddb. Pass the folder that contains them."
            )
        grid = PAPERS if asked.files else Grid((10, 50), (10,), (0.25,))
        study = Study(tasks, Path("large-files.jsonl" if asked.files else "large-quick.jsonl"), grid)
        study.compute()
        print(markdown(study))
        return
    if data_home() is None:
        raise SystemExit("Set BELIEF_DATA to the folder with the public data sets, or pass --quick.")
    study = published()
    study.compute()
    publish(PAGE, "large", markdown(study))
    print(f"{PAGE} is written.")


if __name__ == "__main__":
    main(sys.argv[1:])
