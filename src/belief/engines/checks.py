"""Checks of resources, settings and values before a run, which raise errors or warn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from belief._utils.threads import check_n_jobs
from belief._utils.validation import is_integer
from belief._utils.warnings import warn
from belief.engines.resources import check_device
from belief.method.redundancy import MEASURES
from belief.method.settings import Settings
from belief.method.summary import Summary
from belief.method.targets import Target

MAX_WORKING_MEMORY = 2**30  # MiB; larger numbers of bytes could overflow 64-bit integers
MIN_RANGE = 1e-155  # squares of smaller differences underflow


def check_resources(n_jobs: Any, working_memory: Any, verbose: Any, device: Any = "cpu") -> None:
    """Raise an error if the number of threads, the working memory, the verbosity or the device is invalid."""
    check_device(device)
    if not isinstance(verbose, int) or verbose < 0:
        raise ValueError(f"verbose must be 0, 1 or more; got {verbose!r}.")
    check_n_jobs(n_jobs)
    if not is_integer(working_memory) or not 16 <= working_memory <= MAX_WORKING_MEMORY:
        raise ValueError(f"working_memory must be an integer from 16 to 2**30 (MiB); got {working_memory!r}.")


def check_sizes(settings: Settings, summary: Summary, target: Target, working_memory: int) -> None:
    """Raise an error or warn if the settings do not fit the numbers of rows, features and classes."""
    settings = target.adapt(settings)
    n_rows, n_features, n_classes = summary.m, len(summary.count), len(target.counts)
    if settings.resolve_n_features(n_features) > n_features:
        warn(
            f"n_features_to_select={settings.n_features_to_select}, but the data has only {n_features} features: all"
            " of them are selected."
        )
    if settings.redundancy is not None:
        n_selected = min(n_features, settings.resolve_n_features(n_features))
        n_watched = min(n_features, settings.watch_list_length(n_selected))
        required = MEASURES[settings.redundancy].required_bytes(n_selected, n_watched, n_features) / 2**20
        if required > working_memory:
            raise ValueError(
                f"n_features_to_select={settings.n_features_to_select} with eta={settings.eta} makes a watch list of"
                f" {n_watched} features, which takes {required:.0f} MiB, more than working_memory={working_memory}:"
                " select fewer features, lower eta, raise working_memory, or set redundancy=None."
            )
    sample_size = settings.resolve_sample_size(n_rows)
    if settings.sampling == "proportional" and sample_size < n_classes:
        raise ValueError(
            f"sample_size={settings.sample_size!r} samples {sample_size} of {n_rows} rows, but"
            f" sampling='proportional' needs at least one row of each of the {n_classes} classes: increase sample_size."
        )


def check_values(summary: Summary, names: Sequence[str]) -> None:
    """Raise an error if a column has values from which no differences can be computed.

    Warn about columns without values.
    """
    infinite = np.flatnonzero(np.isinf(summary.minimum) | np.isinf(summary.maximum))
    if len(infinite):
        raise ValueError(
            f"Input X contains infinity, in column {names[infinite[0]]!r}{_and_more(infinite)}: replace infinities by a"
            " number, or by NaN to treat them as missing."
        )
    huge = np.flatnonzero(~np.isfinite(summary.m2))
    if len(huge):
        raise ValueError(
            f"Input X has values too large to square, in column {names[huge[0]]!r}{_and_more(huge)} (from"
            f" {summary.minimum[huge[0]]:g} to {summary.maximum[huge[0]]:g}): rescale the column, or replace these"
            " values by NaN."
        )
    span = summary.maximum - summary.minimum
    span[summary.levels.feature] = 0.0  # values of discrete features are only compared
    tiny = np.flatnonzero((span > 0) & (span < MIN_RANGE))
    if len(tiny):
        raise ValueError(
            f"Input X has values too close together to square their differences, in column {names[tiny[0]]!r}"
            f"{_and_more(tiny)} (from {summary.minimum[tiny[0]]:g} to {summary.maximum[tiny[0]]:g}): multiply the"
            " column by a large number, or leave it out."
        )
    empty = np.flatnonzero(summary.count == 0)
    if len(empty) == len(names):
        raise ValueError("Every value of X is missing: pass data with values.")
    if not np.any((summary.maximum > summary.minimum) & (summary.m2 > 0)):
        raise ValueError("Every feature of X is constant: pass at least one feature that varies.")
    if len(empty):
        warn(f"Column {names[empty[0]]!r}{_and_more(empty)} has no values and is treated as constant.")


def _and_more(columns: np.ndarray) -> str:
    return f" (and {len(columns) - 1} more)" if len(columns) > 1 else ""
