"""What the settings were called, and meant, before: for results and Spark models that an older version has saved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

# A setting that is gone, and the settings that say the same now. A name takes effect when it is no setting any more.
GONE: dict[str, Callable[[Any], dict[str, Any]]] = {
    "stratify": lambda stratify: {"sampling": "proportional" if stratify else "random"},
}
# What versions without a setting did, where that is not its default.
BEFORE: dict[str, Any] = {"class_weight": "prior"}


def modern(saved: Mapping[str, Any], known: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """Saved settings by the names they have now; and the names that are neither known nor say the same as others."""
    now: dict[str, Any] = {}
    strange = []
    for name, value in saved.items():
        said = {name: value} if name in known else _instead(name, value, known)
        now |= said
        strange += [] if said else [name]
    return now, strange


def _instead(name: str, value: Any, known: Collection[str]) -> dict[str, Any]:
    said = GONE[name](value) if name in GONE else {}
    return said if all(other in known for other in said) else {}


def filled(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The same with what was done in place of each setting that came later."""
    later = {name: BEFORE.get(name, default) for name, default in defaults.items() if name not in settings}
    return {**settings, **later}
