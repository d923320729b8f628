"""Write the figures of benchmarks/peers.py as a table, and draw a plot with one panel for each data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common import as_data, table
from page import computed_at, digits


def markdown(kept: dict[str, Any]) -> str:
    head = ["table", "selector", "seconds", "times BELIEF's", "MB in all", "MB in the call", "found", "not noise"]
    rows = [line(row, belief_seconds(kept, row["table"])) for row in kept["rows"]]
    lines = [f"All figures: {as_data('other selectors', table(head, rows))}."]
    lines += ["", "Versions: " + ", ".join(dict.fromkeys(kept["packages"].values())) + "."]
    lines += [f"{name}: not installed, left out." for name in kept["left_out"]]
    return "\n".join([*lines, computed_at(row["commit"] for row in kept["rows"])])


def line(row: dict[str, Any], ours: float | None) -> list[str]:
    m, F = row["table"]
    start = [f"{m:,} x {F:,}", label(row), outcome(row)]
    if "seconds" not in row:
        return [*start, "", "", "", "", ""]
    times = digits(row["seconds"] / ours) if ours else ""
    memory = (f"{row['peak_mb']:,.0f}", f"{row['call_mb']:,.0f}")
    return [*start, times, *memory, f"{row['found']:.2f}", f"{row['not_noise']:.2f}"]


def belief_seconds(kept: dict[str, Any], shape: list[int]) -> float | None:
    """Return the seconds of BELIEF with default settings on a table, or None if it was not measured."""
    return next((r.get("seconds") for r in kept["rows"] if r["peer"] == "BELIEF" and r["table"] == shape), None)


def label(row: dict[str, Any]) -> str:
    return row["peer"] if row["rows"] == row["table"][0] else f"{row['peer']}, only {row['rows']:,} rows"


def outcome(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"failed ({row['failed']})"
    return digits(row["seconds"]) if "seconds" in row else f"more than {row['more_than']:g}"


def draw(kept: dict[str, Any], file: Path) -> None:
    """Draw one panel for each data set, with a bar for the seconds of each selector on a log scale.

    The label of a bar shows its seconds and the share of informative features found.
    """
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "peers"  # fixed ids, so that equal plots give equal files
    shapes = list(dict.fromkeys(tuple(row["table"]) for row in kept["rows"]))
    figure = Figure(figsize=(4.2 * len(shapes) + 1.5, 0.42 * len(kept["packages"]) + 1.4), facecolor="white")
    panels = figure.subplots(1, len(shapes), sharex=True, squeeze=False)[0]
    for panel, shape in zip(panels, shapes, strict=True):
        bars(panel, [row for row in kept["rows"] if tuple(row["table"]) == shape])
        panel.set(title=f"{shape[0]:,} x {shape[1]:,}", xscale="log", xlabel="seconds")
    low, high = panels[0].get_xlim()
    # wider limits, so that the shortest bar is visible and the labels on the right of the bars have room
    panels[0].set_xlim(low / 3, high * (high / low) ** 0.5)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="svg", metadata={"Date": None})


def bars(panel: Any, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        seconds = row.get("seconds", row.get("more_than"))
        if seconds is None:
            continue
        done, mine = "seconds" in row, row["peer"].startswith("BELIEF")
        panel.barh(label(row), seconds, color="#1b6ca8" if mine else "#b0b7bf", hatch=None if done else "//")
        said = f" {outcome(row)} s" + (f", found {row['found']:.2f}" if done else "")
        panel.annotate(said, (seconds, label(row)), va="center", fontsize=8)
    panel.invert_yaxis()
    panel.tick_params(axis="y", labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
