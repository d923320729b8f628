"""Measure F1 and time for different sample sizes (figures 2 to 6 of the paper).

    python experiments/sampling.py
    python experiments/sampling.py --quick

The data is synthetic, with the shape of epsilon, ECBDL14, url and kddb. For figures 2 to 5, BELIEF (with several
sampling rates) and mRMR run on Spark, on the same table. For figure 6, BELIEF runs without Spark, with samples of 100
rows, 1 % of the rows and 2,000 rows. F1 is that of MLlib's linear SVM, trained on the selected features.

Each result is saved in sampling.jsonl as soon as it is computed, so an interrupted run continues where it stopped. The
script writes the tables into docs/experiments/sampling.md, and the figures into the same folder. `--quick` uses smaller
tables and fewer settings, saves its results in sampling-quick.jsonl in the current folder, and prints the tables. Spark
needs Java.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import HOME, Answers, paper, publish
from large import digest, timed
from large_judges import on_disk, with_mllib
from large_tasks import Array, Data, Task, look_alikes
from sampling_page import draw, markdown

import belief

ANSWERS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "experiments" / "sampling.md"
RATES, SIZES, SEEDS = (0.01, 0.02, 0.25, 0.5), (100, 10), (0, 1, 2)
# sample sizes for figure 6: those of DiReliefF, of the paper, and of the first sample with our defaults
SAMPLES = {"100 rows": 100, "1 %": 0.01, "2,000 rows": 2000}
FULL = {"epsilon": 50_000, "ecbdl14": 50_000, "url": (50_000, 80_000), "kddb": (50_000, 80_000)}
QUICK = {"epsilon": 2_000, "ecbdl14": 2_000, "url": (2_500, 5_000), "kddb": (2_500, 5_000)}
FULL_FEW, QUICK_FEW = 125_000, 3_000  # rows of the data sets for figure 6


class Study:
    """The results of the study, which are computed if they are not in the file.

    Parameters
    ----------
    tasks : dict
        The data sets for figures 2 to 5.
    over_reduced : dict
        The data sets for figure 6, of which only a few rows are sampled.
    file : Path
        The file of the results.
    rates : tuple of float
        The sampling rates for figures 2 to 5.
    sizes : tuple of int
        The numbers of features to select for figures 2 to 5.
    """

    def __init__(
        self, tasks: dict[str, Task], over_reduced: dict[str, Task], file: Path,
        rates: tuple[float, ...] = RATES, sizes: tuple[int, ...] = SIZES,
    ) -> None:  # fmt: skip
        self.tasks, self.over_reduced, self.rates, self.sizes = tasks, over_reduced, rates, sizes
        self.answers = Answers(file, {
            "rates": rates, "sizes": sizes, "seeds": SEEDS, "few": SAMPLES,
            "tasks": {name: task.describe() for name, task in tasks.items()},
            "over-reduced": {name: task.describe() for name, task in over_reduced.items()},
        })  # fmt: skip
        self._name, self._data = "", None  # type: str, Data | None
        self._warm = ""

    def data(self, name: str) -> Data:
        """Return a data set; only the last one stays in memory."""
        if self._name != name or self._data is None:
            self._data = None
            self._name, self._data = name, {**self.tasks, **self.over_reduced}[name].make(0)
        return self._data

    def rows(self, name: str) -> int:
        """Return the number of training rows, from which the samples are drawn."""
        return self.answers.get(f"{name} | rows", lambda: len(self.data(name).y))

    def belief(self, name: str, rate: float, n: int) -> dict[str, Any]:
        """Return F1 and the runtime in seconds of BELIEF + mCR with the paper's settings and this sampling rate."""
        found = self.answers.get(f"{name} | BELIEF | rate {rate} | {n}", lambda: self._belief(name, rate, n))
        return {"seconds": found["seconds"], "f1": self.f1(name, indices(found["selected"]))}

    def _belief(self, name: str, rate: float, n: int) -> dict[str, Any]:
        from belief.method.settings import Settings
        from belief.spark.frames import select_frame

        data = self.data(name)
        chosen = paper(data.X, data.discrete) | {"sample_size": rate}
        settings = Settings(n_features_to_select=n, random_state=0, **chosen)
        return self._timed(name, lambda df, **columns: select_frame(df, settings=settings, **columns).selected)

    def mrmr(self, name: str, n: int) -> dict[str, Any]:
        """Return F1 and the runtime in seconds of mRMR, which uses all rows."""
        found = self.answers.get(f"{name} | mRMR | {n}", lambda: self._mrmr(name, n))
        return {"seconds": found["seconds"], "f1": self.f1(name, indices(found["selected"]))}

    def _mrmr(self, name: str, n: int) -> dict[str, Any]:
        from mrmr_on_spark import mrmr_frame

        return self._timed(name, lambda df, **columns: mrmr_frame(df, n=n, **columns).selected)

    def _timed(self, name: str, select: Callable[..., Array]) -> dict[str, Any]:
        """Return the features selected from a table on disk, and the runtime; a new data set needs a warm-up first."""
        data = self.data(name)
        columns = {"features": "features", "label": "label", "discrete_features": np.flatnonzero(data.discrete)}
        if self._warm != name:
            self._warm = name
            self._belief(name, RATES[0], 2)
            self._mrmr(name, 2)
        with on_disk(data.X, data.y) as df:
            return timed(lambda: select(df, **columns))

    def few(self, name: str, sample: float, seed: int) -> float:
        """Return F1 with ten features, selected with a sample of this size (a number or a share of the rows).

        Redundancy is ignored, as in DiReliefF.
        """

        def select() -> str:
            data = self.data(name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a class may have fewer rows than n_neighbors
                settings = paper(data.X, data.discrete) | {"sample_size": sample, "redundancy": None}
                found = belief.select(
                    data.X, data.y, min(SIZES), **settings, random_state=seed, discrete_features=data.discrete
                )
            return " ".join(map(str, found.selected.tolist()))

        return self.f1(name, indices(self.answers.get(f"{name} | sample {sample} | seed {seed}", select)))

    def f1(self, name: str, selected: Array) -> float:
        """Return the weighted F1 of MLlib's linear SVM on the selected features."""

        def judge() -> float:
            mark = with_mllib(self.data(name), np.sort(selected), only="SVM")["SVM"]
            assert mark is not None
            return mark["f1"]

        return self.answers.get(f"{name} | judged {digest(selected)}", judge)

    def compute(self) -> None:
        """Compute all missing results, one data set after the other."""
        for name in self.tasks:
            self.rows(name)
            for n in self.sizes:
                self.mrmr(name, n)
                for rate in self.rates:
                    self.belief(name, rate, n)
        for name in self.over_reduced:
            self.rows(name)
            for seed in SEEDS:
                for sample in SAMPLES.values():
                    self.few(name, sample, seed)


def over_reduced(n_rows: int) -> dict[str, Task]:
    """Return a dense and a sparse data set for figure 6; 1 % of n_rows should be much more than 100."""
    made = look_alikes(n_rows, n_rows, (n_rows, n_rows), (n_rows, n_rows))
    return {f"{name}, larger": made[name] for name in ("epsilon-like", "url-like")}


def published() -> Study:
    """Return the study whose tables are on the page."""
    return Study(look_alikes(**FULL), over_reduced(FULL_FEW), ANSWERS)


def indices(text: str) -> Array:
    """Return the indices of features from a string of numbers, the form in which they are saved."""
    return np.array(text.split(), int)


def main(words: list[str]) -> None:
    """Compute the missing results, and write the page or print the tables."""
    if words not in ([], ["--quick"]):
        raise SystemExit(__doc__)
    if words:
        asked = (Path("sampling-quick.jsonl"), (RATES[0], RATES[-1]), SIZES[-1:])
        study = Study(look_alikes(**QUICK), over_reduced(QUICK_FEW), *asked)
        study.compute()
        print(markdown(study))
        return
    study = published()
    study.compute()
    draw(study, PAGE.parent)
    publish(PAGE, "sampling", markdown(study))
    print(f"{PAGE} and the figures beside it are written.")


if __name__ == "__main__":
    main(sys.argv[1:])
