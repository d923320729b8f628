"""What is refused, or warned of, before the work begins: settings, sizes and values that do not go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from belief._utils.threads import check_n_jobs
from belief._utils.validation import is_integer
from belief._utils.warnings import warn
from belief.engines.resources import check_device
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target


def check_resources(n_jobs: Any, working_memory: Any, verbose: Any, device: Any = "cpu") -> None:
    """Refuse what is not a number of threads, of MiB, a loudness, or a device."""
    check_device(device)
    if not isinstance(verbose, int) or verbose < 0:
        raise ValueError(f"verbose must be 0, 1 or more; got {verbose!r}.")
    check_n_jobs(n_jobs)
    if not is_integer(working_memory) or working_memory < 16:
        raise ValueError(f"working_memory must be an integer of at least 16 (MiB); got {working_memory!r}.")


def check_sizes(settings: Settings, summary: Summary, target: Target, working_memory: int) -> None:
    """Refuse, or warn of, settings that do not go with the size of the data."""
    settings = target.adapt(settings)
    m, F, n_classes = summary.m, len(summary.mean), len(target.counts)
    if settings.resolve_n_features(F) > F:
        warn(
            f"n_features_to_select={settings.n_features_to_select} is more than the {F} features there are: all are"
            " selected, in order."
        )
    if settings.redundancy == "mcr":
        _check_joint(settings, F, working_memory)
    if settings.sampling == "proportional" and settings.resolve_sample_size(m) < n_classes:
        raise ValueError(
            f"sample_size={settings.sample_size!r} comes to {settings.resolve_sample_size(m)} of {m} rows, fewer"
            f" than the {n_classes} classes: with sampling='proportional' at least one row of each is sampled; ask"
            " for more."
        )


def _check_joint(settings: Settings, F: int, working_memory: int) -> None:
    """The joint collisions of the watched features are held all at once: two numbers for each pair of them."""
    n = min(F, settings.resolve_n_features(F))
    watched = min(F, settings.watch_list_length(n))
    need = 16 * watched * max(watched, min(F, 2 * n)) / 2**20
    if need > working_memory:
        raise ValueError(
            f"n_features_to_select={settings.n_features_to_select} with eta={settings.eta} watches {watched} features,"
            f" whose joint collisions take {need:.0f} MiB, more than working_memory={working_memory}: select fewer,"
            " lower eta, raise working_memory, or set redundancy=None."
        )


def check_values(summary: Summary, names: Sequence[str]) -> None:
    """Refuse, or warn of, values that cannot be used, by the name of the column."""
    infinite = np.flatnonzero(np.isinf(summary.minimum) | np.isinf(summary.maximum))
    if len(infinite):
        raise ValueError(
            f"Input X contains infinity, in column {names[infinite[0]]!r}{_and_more(infinite)}: replace infinities by a"
            " number, or by NaN to have them count as missing."
        )
    huge = np.flatnonzero(~np.isfinite(summary.m2))
    if len(huge):
        raise ValueError(
            f"Input X has values too large to square, in column {names[huge[0]]!r}{_and_more(huge)} (from"
            f" {summary.minimum[huge[0]]:g} to {summary.maximum[huge[0]]:g}): rescale it, or make such values NaN."
        )
    empty = np.flatnonzero(summary.count == 0)
    if len(empty) == len(names):
        raise ValueError("Every value of X is missing: there is nothing to select from.")
    if not np.any((summary.maximum > summary.minimum) & (summary.m2 > 0)):
        raise ValueError("Every feature of X is constant: there is nothing to tell the classes apart by.")
    if len(empty):
        warn(f"Column {names[empty[0]]!r}{_and_more(empty)} has no value at all: it counts as constant.")


def _and_more(columns: np.ndarray) -> str:
    return f" (and {len(columns) - 1} more)" if len(columns) > 1 else ""
