"""Redundancy between features, one file per measure. `MEASURES` lists them by their names in the settings."""

from belief.method.redundancy.agreement import Agreement
from belief.method.redundancy.base import Measure, RelevanceOnly, Rule
from belief.method.redundancy.mcr import MCR

MEASURES: dict[str, type[Measure]] = {"agreement": Agreement, "mcr": MCR}


def make_rule(redundancy: str | None, theta: float | str) -> Rule:
    """Return the selection rule of a redundancy measure; with None, redundancy is ignored."""
    return RelevanceOnly() if redundancy is None else MEASURES[redundancy].make_rule(theta)
