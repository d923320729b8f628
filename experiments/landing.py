"""Write the table of the landing page and the README, which compares BELIEF with five other selectors on four problems.

    python experiments/landing.py

The figures come from stored answers: those of experiments/contest.py for the share of the relevant features found on
synthetic tables (with interactions, a rare class, or copies), and those of benchmarks/peers.py for the share found and
the time on a large table. This program measures nothing. Run it again after either of the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from common import HOME, Answers, publish, table
from contest import ANSWERS, configuration
from contest_marks import mean_truth
from contest_tasks import MADE

PAGES = {HOME / "docs" / "index.md": "", HOME / "README.md": "docs/"}  # with the path from each page to linked ones
PEERS = HOME / "benchmarks" / "peers.json"
SELECTORS = {  # name in the table: (name in contest.py, name in peers.py)
    "BELIEF": ("BELIEF", "BELIEF"),
    "F test": ("F test", "scikit-learn F test"),
    "mutual information": ("mutual information", "scikit-learn mutual information"),
    "mRMR": ("mRMR (mrmr-selection)", "mrmr-selection"),
    "Boruta": ("Boruta", "Boruta"),
    "ReliefF": ("ReliefF (fast-select)", "fast-select ReliefF"),
}
FOUND = {
    "interactions": "if columns matter only **together**",
    "imbalance": "if one class is **rare**",
    "copies": "if columns have many **copies**",
}
SIZE = [2_000, 20_000]


def markdown(answers: Answers, peers: dict[str, Any], folder: str) -> str:
    """Return the table and the text below it, with links to the pages in a folder."""
    shares = [[mean_truth(answers, name, MADE[kind]) for name, _ in SELECTORS.values()] for kind in FOUND]
    lines = [[words, *emphasised(each)] for words, each in zip(FOUND.values(), shares, strict=True)]
    lines.append(["on **{:,} rows × {:,} columns**".format(*SIZE), *on_large(peers)])
    return (
        f"{table(['relevant columns found', *SELECTORS], lines)}\n\nThe tables are"
        f" [synthetic]({folder}experiments/contest.md). If n columns are relevant, each selector selects n columns."
        f" A column and its copies count as one. [Times]({folder}benchmarks.md) are on two cores. The F test and mutual"
        " information are used with SelectKBest. mRMR is from the package mrmr-selection, and ReliefF from fast-select."
    )


def emphasised(shares: list[float]) -> list[str]:
    """Format shares as percentages, with the largest in bold."""
    shown = [f"{share:.0%}".replace("%", " %") for share in shares]
    return [f"**{x}**" if share > max(shares) - 0.005 else x for x, share in zip(shown, shares, strict=True)]


def on_large(peers: dict[str, Any]) -> list[str]:
    """Return the share found and the time of each selector on the large table, or the limit that it exceeded."""
    named = [next(row for row in peers["rows"] if is_on_large(row, name)) for _, name in SELECTORS.values()]
    shares = emphasised([row.get("found", 0.0) for row in named])
    return [
        f"{share} in {row['seconds']:.2g} s" if "seconds" in row else f"more than {row['more_than']:g} s"
        for share, row in zip(shares, named, strict=True)
    ]


def is_on_large(row: dict[str, Any], name: str) -> bool:
    """Return True if a row has the figures of this selector on all rows of the large table."""
    return row["peer"] == name and row["table"] == SIZE and row["rows"] == SIZE[0]


def main() -> None:
    """Write the table into the landing page and the README."""
    answers, peers = Answers(ANSWERS, configuration()), json.loads(PEERS.read_text())
    for page, folder in PAGES.items():
        publish(Path(page), "landing", markdown(answers, peers, folder))


if __name__ == "__main__":
    main()
