"""Measures of the redundancy between features, one file for each.

`MEASURES` maps the values of the setting `redundancy` to these measures.
"""

from belief.method.redundancy.agreement import Agreement
from belief.method.redundancy.base import Measure, Rule
from belief.method.redundancy.mcr import MCR

MEASURES: dict[str, type[Measure]] = {"agreement": Agreement, "mcr": MCR}


def make_rule(redundancy: str | None, theta: float | str) -> Rule:
    """Return the rule by which features are selected with a redundancy measure; with None, redundancy is ignored."""
    return Rule() if redundancy is None else MEASURES[redundancy].make_rule(theta)
