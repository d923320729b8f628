"""What the second edition must show: each requirement, what was measured, and whether it is met.

    BELIEF_DATA=folder python experiments/second.py
    BELIEF_DATA=folder python experiments/second.py growing auto

Names of parts, as in the table, compute those only. Every answer is kept in second.jsonl as it comes, so a run that was
stopped goes on where it was. Prints the table of what is known, and writes it into docs/reproduction.md if that is all.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checking import Check
from common import HOME, Answers, data_home, publish, table
from second_found import CHECKS as FOUND
from second_sure import CHECKS as SURE

ANSWERS = Path(__file__).with_suffix(".jsonl")
PAGE = HOME / "docs" / "reproduction.md"
CHECKS = [*FOUND, *SURE]


def compute(answers: Answers, parts: list[str]) -> None:
    """The answers to the checks of some parts, or of all."""
    for check in CHECKS:
        if not parts or check.part in parts:
            for key, cell in check.cells.items():
                answers.get(f"{check.part} | {key}", lambda: timed(cell))  # noqa: B023


def timed(cell: Callable[[], Any]) -> dict[str, Any]:
    """An answer and how many seconds it took."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than neighbours; nothing but noise
        found = cell()
    return {"found": found, "seconds": round(time.perf_counter() - start, 1)}


def found(answers: Answers, check: Check) -> dict[str, Any] | None:
    """What was measured for a check, if all of it was."""
    keys = {key: f"{check.part} | {key}" for key in check.cells}
    if not all(key in answers.answers for key in keys.values()):
        return None
    return {short: answers.answers[key]["found"] for short, key in keys.items()}


def markdown(answers: Answers) -> str:
    """The table: a line for each check."""
    lines = []
    for check in CHECKS:
        if (there := found(answers, check)) is not None:
            measured, met = check.judge(there)
            lines.append([check.part, check.wanted, measured, "yes" if met else "**no**"])
    return f"{table(['part', 'target', 'measured', 'met'], lines)}\n\n{answers.origin}"


def configuration() -> dict[str, Any]:
    """What the answers depend on, beside the code: nothing, for each has its own name."""
    return {}


def main(parts: list[str]) -> None:
    """Compute what is missing, print the table, and write the page when nothing is missing."""
    known = {check.part for check in CHECKS}
    if not known.issuperset(parts):
        raise SystemExit(f"The parts are {', '.join(sorted(known))}; got {' '.join(parts)}.")
    if data_home() is None:
        raise SystemExit("Set BELIEF_DATA to the folder with the public data sets.")
    answers = Answers(ANSWERS, configuration())
    compute(answers, parts)
    print(markdown(answers))
    if all(found(answers, check) is not None for check in CHECKS):
        publish(PAGE, "second", markdown(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
