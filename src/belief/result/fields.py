"""What the fields of a Result are written as, what they are made from again, and what older versions had instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from belief.method.arrays import Array
from belief.method.distributions import PARTS, FeatureDistribution
from belief.method.settings import Settings
from belief.method.targets import CLASSIFICATION, REGRESSION
from belief.result.older import filled, modern


class Numbered(Sequence[str]):
    """The names x0, x1, ... of features that came without: made when asked for, since there may be millions."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(self._n))]
        if not -self._n <= i < self._n:
            raise IndexError(i)
        return f"x{int(i) % self._n}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"Numbered({self._n})"


def plain_classes(classes: Array) -> list[Any]:
    """The classes as JSON has them."""
    return [c if isinstance(c, str | int | float) else str(c) for c in classes.tolist()]


def names_in(names: Any, values: Mapping[str, Any]) -> Sequence[str]:
    """The names of all features, or x0, x1, ... where none were written."""
    F = len(values["weights"])
    if names is None:
        return Numbered(F)
    if not isinstance(names, list | tuple) or len(names) != F or not all(isinstance(name, str) for name in names):
        raise ValueError(f"not {F} names")
    return names


def plain_names(names: Sequence[str]) -> Sequence[str] | None:
    """None for names that can be made again."""
    return None if isinstance(names, Numbered) else names


def settings_in(saved: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by today's names; one that has none stays as it is, since it tells what was done."""
    defaults = Settings().as_dict()
    now, strange = modern(saved, defaults)
    now = filled(now, defaults)
    Settings(**now)
    return {**now, **{name: saved[name] for name in strange}}


def task_in(task: Any, values: Mapping[str, Any]) -> str:
    """Classes have names, and numbers have quantiles."""
    known = {CLASSIFICATION: values["classes"], REGRESSION: values.get("quantiles")}
    if not known[task]:
        raise ValueError(task)
    return str(task)


def portraits_in(saved: list[dict[str, Any]], values: Mapping[str, Any]) -> list[FeatureDistribution]:
    """Portraits of features that there are, by groups that there are."""
    groups = len(values["classes"]) if values.get("task") != REGRESSION else PARTS
    return [FeatureDistribution.read(each, len(values["weights"]), groups) for each in saved]


def plain_portraits(portraits: list[FeatureDistribution]) -> list[dict[str, Any]]:
    """Portraits as JSON has them."""
    return [dict(vars(each)) for each in portraits]


def unknown(values: Mapping[str, Any]) -> Array:
    """Of every feature, where an older version did not find out."""
    return np.full(len(values["weights"]), np.nan)


def neighbours(values: Mapping[str, Any]) -> int:
    """K, as older versions took it."""
    k, pooled = values["settings"]["n_neighbors"], values["settings"]["neighborhood"] == "pooled"
    return int(k) * (len(values["classes"]) if pooled else 1)


def stopped(values: Mapping[str, Any]) -> str:
    """Older versions never let the sample grow."""
    return "all rows" if values["sample_size"] == values["n_rows"] else "fixed"
