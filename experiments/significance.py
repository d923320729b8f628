"""Measure the calibration and power of the significance tests, and whether they find interactions.

    python experiments/significance.py
    python experiments/significance.py --only calibration auto --seeds 4

`--only` computes some parts, and `--seeds` limits the number of seeds of each. Each result is saved in
significance.jsonl as soon as it is computed, so an interrupted run continues where it stopped. The tables go into
docs/experiments/significance.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import HOME, Answers, publish
from scipy import stats
from significance_tables import ASKED, AUTO, BORUTA, CALIBRATION, INTERACTIONS, MORE_SEEDS, POWER, Maker, Table, make
from threadpoolctl import threadpool_limits

import belief

ANSWERS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "experiments" / "significance.md"
FIRST_SEED = 5000  # no setting was chosen with this seed or larger ones
SEEDS = {"calibration": 20, "interactions": 20, "power": 20, "asked": 6, "auto": 20, "boruta": 3}
ALPHAS = (0.05, 0.01)
FDR = 0.05


# --- one answer ------------------------------------------------------------------------------------------------------


def select(table: Table, n: int | str, **settings: Any) -> belief.Result:
    """Select features with the defaults, on one core."""
    task = "regression" if table.is_numeric else "classification"
    return belief.select(
        table.X, table.y, n, discrete_features=table.discrete, task=task, random_state=0, n_jobs=1, **settings
    )


def counts_below(p: Any) -> list[int]:
    """Return the number of p-values, and how many of them are below 0.05 and below 0.001."""
    return [len(p), int((p < 0.05).sum()), int((p < 0.001).sum())]


def tested(table: Table) -> dict[str, Any]:
    """Return the counts of small p-values of irrelevant columns, and of columns with a q-value below FDR.

    `neighbours` and `combined` are results of the function `counts_below`. `found` has three numbers: the irrelevant
    columns found, the relevant columns found, and all relevant columns.
    """
    result = select(table, 1)
    noise = np.delete(np.arange(table.X.shape[1]), table.relevant)
    of_noise = result.p_neighbours[noise]
    found = result.q_value < FDR
    return {
        "neighbours": counts_below(of_noise[~np.isnan(of_noise)]),
        "combined": counts_below(result.p_value[noise]),
        "found": [int(found[noise].sum()), int(found[table.relevant].sum()), len(table.relevant)],
    }


def univariate_q(table: Table) -> Any:
    """Return the q-values of the F test, or of Spearman's correlation with a numeric target."""
    if table.is_numeric:
        p = np.array([stats.spearmanr(x, table.y).pvalue for x in table.X.T])
    else:
        p = stats.f_oneway(*(table.X[table.y == c] for c in np.unique(table.y))).pvalue
    return stats.false_discovery_control(np.nan_to_num(p, nan=1.0))  # p is NaN if rounding makes F negative


def compared(table: Table) -> list[float]:
    """Return the shares of relevant columns that the combined and the univariate test find with q < 0.05."""
    return [round(float((q[table.relevant] < FDR).mean()), 4) for q in (select(table, 1).q_value, univariate_q(table))]


def asked(table: Table) -> float:
    """Select as many columns as are relevant, and return the share of relevant columns among them."""
    return round(float(np.isin(table.relevant, select(table, len(table.relevant)).selected).mean()), 4)


def counted(selected: Any, table: Table) -> list[int]:
    """Return how many relevant and how many irrelevant columns were selected."""
    hits = int(np.isin(selected, table.relevant).sum())
    return [hits, len(selected) - hits]


def automatic(table: Table, alpha: float) -> list[list[int]]:
    """Return how many relevant and irrelevant columns "auto" selects, and how many the univariate test finds."""
    result = select(table, "auto", alpha=alpha)
    # If no column is significant, "auto" warns and selects the one with the largest weight, which does not count here.
    selected = result.selected if (result.q_value < alpha).any() else []
    return [counted(selected, table), counted(np.flatnonzero(univariate_q(table) < alpha), table)]


def boruta(table: Table) -> dict[str, Any]:
    """Return how many relevant and irrelevant columns BELIEF and Boruta select, and their CPU seconds."""
    from boruta import BorutaPy
    from sklearn.ensemble import RandomForestClassifier

    def confirmed() -> Any:
        forest = RandomForestClassifier(max_depth=5, n_jobs=1, random_state=0)
        return np.flatnonzero(BorutaPy(forest, n_estimators="auto", random_state=0).fit(table.X, table.y).support_)

    answer = {}
    for name, way in (("belief", lambda: select(table, "auto").selected), ("boruta", confirmed)):
        start = time.process_time()
        answer[name] = [*counted(way(), table), round(time.process_time() - start, 2)]
    return answer


# --- all answers -----------------------------------------------------------------------------------------------------

Cell = tuple[str, Maker, Callable[[Table], Any]]


def cells(part: str) -> Iterator[Cell]:
    """Yield the name of each result of a part, and the functions that make its table and compute the result."""
    if part == "auto":
        for alpha in ALPHAS:
            yield from ((f"{name} | alpha={alpha}", m, partial(automatic, alpha=alpha)) for name, m in AUTO.items())
    elif part == "asked":
        yield from ((name, maker, asked) for name, (maker, _) in ASKED.items())
    else:
        makers = {"calibration": CALIBRATION, "interactions": INTERACTIONS, "power": POWER, "boruta": BORUTA}[part]
        compute = {"power": compared, "boruta": boruta}.get(part, tested)
        yield from ((name, maker, compute) for name, maker in makers.items())


def key_of(part: str, name: str, seed: int) -> str:
    """Return the key of a result in significance.jsonl."""
    return f"{part} | {name} | seed={seed}"


def seeds(part: str, name: str) -> range:
    """Return the seeds with which a table is made."""
    return range(FIRST_SEED, FIRST_SEED + MORE_SEEDS.get(name, SEEDS[part]))


def compute(answers: Answers, parts: tuple[str, ...], n_seeds: int) -> None:
    """Compute the missing results of some parts, one seed after the other."""
    for part in parts:
        for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
            for name, maker, what in cells(part):
                of_table = name.partition(" | ")[0]
                if seed in seeds(part, of_table):
                    answers.get(key_of(part, name, seed), lambda: what(make(of_table, maker, seed)))  # noqa: B023


def configuration() -> dict[str, Any]:
    """Return the settings that the results depend on; if they change, all results are discarded."""
    return {"first seed": FIRST_SEED, "fdr": FDR}


def main() -> None:
    """Compute the missing results, print the tables and write them into the page."""
    import significance_page

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SEEDS, default=tuple(SEEDS), metavar="PART")
    parser.add_argument("--seeds", type=int, default=max(MORE_SEEDS.values()), help="the maximum number of seeds")
    options = parser.parse_args()
    answers = Answers(ANSWERS, configuration())
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some tables have copies, missing values or only noise on purpose
        compute(answers, options.only, options.seeds)
    for part, text in significance_page.tables(answers).items():
        print(text, end="\n\n")
        publish(PAGE, part, text)


if __name__ == "__main__":
    main()
