"""Save the figures of a benchmark as JSON and CSV files, and write the links to them into docs/benchmarks.md.

Each row of figures notes the commit that it was computed at.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from common import HOME, as_data, commit, publish, table

PAGE = HOME / "docs" / "benchmarks.md"
HEADS = {
    "case": "case", "data": "data", "seconds": "seconds", "against": "against", "their_seconds": "theirs, s",
    "ratio": "ratio", "wanted": "target", "speed": "MB/s", "cpu": "CPU s", "their_cpu": "theirs, CPU s",
    "numba_cpu": "numba, CPU s", "numpy_cpu": "numpy, CPU s",
    "float32_ratio": "float32 search / bare product", "integer_ratio": "integer search / bare product",
    "cpu_ratio": "ratio of CPU", "cpu_speed": "MB per CPU s",
    "peak_gb": "peak GB", "overhead_gb": "overhead, GB", "matrix_gb": "matrix, GB", "reads": "reads of the file",
    "recall": "share of the strongest found", "out": "out, to each task, MB", "back": "back from all, MB",
    "describe": "describe, s", "sample": "sample, s", "neighbours": "neighbours, s", "tally": "tally, s",
    "redundancy": "redundancy, s", "significance": "significance, s", "explain": "explain, s",
    "describe_ms": "describe, ms", "sample_ms": "sample, ms", "neighbours_ms": "neighbours, ms",
    "tally_ms": "tally, ms", "redundancy_ms": "redundancy, ms", "explain_ms": "explain, ms",
}  # fmt: skip


def shown(name: str, rows: list[dict[str, Any]], whole: bool) -> str:
    """Return the tables of a benchmark as text. A whole run also saves its rows and updates the page.

    Saved rows of the same cases are replaced. Those of other cases stay in the file and on the page.
    """
    rows = [{**r, "commit": commit()} for r in rows]
    if not whole:
        return markdown(rows)
    file = Path(__file__).with_name(f"{name}.json")
    old = json.loads(file.read_text())["rows"] if file.exists() else []
    measured = {r["case"] for r in rows}
    order = list(dict.fromkeys(r["case"] for r in old + rows))
    rows = sorted([r for r in old if r["case"] not in measured] + rows, key=lambda r: order.index(r["case"]))
    file.write_text(json.dumps({"rows": rows}, indent=1))
    publish(PAGE, name, markdown(rows))
    return markdown(rows)


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return a text with the tables of these rows, and with the commits at which the rows were computed.

    Rows with the same fields share a table. `publish` later replaces each table by a link to a CSV file.
    """
    files = []
    tables: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for r in rows:
        tables.setdefault(tuple(n for n in HEADS if n in r), []).append(r)
    for names, lines in tables.items():
        whole = table([HEADS[n] for n in names], [[_cell(n, r[n]) for n in names] for r in lines])
        files.append(as_data(_name_of([r["case"] for r in lines]), whole))
    return f"All figures: {', '.join(files)}. {computed_at(r['commit'] for r in rows)}"


def _name_of(cases: list[str]) -> str:
    """Return the name of a table, which is also used for its CSV file.

    The name is the first case in the table, up to a comma. If the table has other cases, "and others" follows.
    """
    first, *others = dict.fromkeys(x.split(",")[0] for x in cases)
    return f"{first} and others" if others else first


def computed_at(commits: Any) -> str:
    """Return a sentence that lists the commits at which the figures were computed."""
    return f"Computed at commit {', '.join(sorted(set(commits)))}."


def digits(value: float) -> str:
    """Format a number with three significant digits, or rounded to an integer if it is at least 100 or below 0.0005."""
    return f"{value:,.0f}" if value >= 100 or value < 5e-4 else f"{value:.3g}"


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    text = digits(value) if isinstance(value, float) else str(value)
    return f"**{text}**" if name == "ratio" else text
