"""Redundancy: how much features repeat each other, and what it costs them. One file a measure; here is the list."""

from belief.method.redundancy.agreement import Agreement
from belief.method.redundancy.base import Measure
from belief.method.redundancy.mcr import MCR

MEASURES: dict[str, type[Measure]] = {"agreement": Agreement, "mcr": MCR}
