"""Columns with roles other than feature or target: the group, the strata and the weight of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from belief._utils.validation import is_integer
from belief.data.columns import ColumnSelection, is_column
from belief.data.containers import is_anndata
from belief.data.inputs import TableBlock
from belief.data.kinds import check_frame
from belief.data.labels import as_array, is_missing
from belief.data.source import is_sparse
from belief.data.stream import TableStream
from belief.data.table import as_blocks, as_frame
from belief.method.arrays import Array
from belief.method.design import Design, make_strata, number_by_appearance, number_texts

ROLES = ("groups", "adjust_for", "sample_weight")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ReadDesign = Callable[[], Design]


@dataclass(frozen=True)
class Roles:
    """The parameters `groups`, `adjust_for` and `sample_weight`, each given as columns of X or as values."""

    groups: Any = None
    adjust_for: Any = None
    sample_weight: Any = None

    def with_values(self, found: Mapping[str, list[Any]]) -> Roles:
        """Return a copy with the arrays in `found` as values: several arrays for `adjust_for`, otherwise one."""
        return replace(self, **{role: x if role == "adjust_for" else x[0] for role, x in found.items()})

    @property
    def exist(self) -> bool:
        return any(getattr(self, name) is not None for name in ROLES)

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns of X for each parameter that is given by columns of X, and not by values."""
        named: dict[str, list[Any]] = {}
        for name in ROLES:
            value = getattr(self, name)
            if is_column(value):
                named[name] = [value]
            elif name == "adjust_for" and isinstance(value, list | tuple) and value and all(map(is_column, value)):
                named[name] = list(value)
        return named

    def take_from(self, X: Any, y: Any, columns: ColumnSelection) -> tuple[Any, Any, ColumnSelection, Roles]:
        """Read the columns that have roles, such as groups, and drop rows of weight 0.

        This applies to tables in memory. If X is read in batches, everything is returned unchanged, and `open` reads
        the columns later.

        Returns
        -------
        X, y, columns, roles
            The table and the target without rows of weight 0, the columns of X to use, and the roles with
            values instead of names.
        """
        named = self.columns()
        names = [column for each in named.values() for column in each]
        for role, each in named.items():
            check_is_not_target(each, columns.label, role)
        first = as_blocks(X)[0]
        if is_anndata(X):
            known = [*X.obs.columns]
            for role, name in ((role, name) for role, each in named.items() for name in each if name not in known):
                raise ValueError(f"{role}: there is no column {name!r} in obs, whose columns are {known[:8]}.")
            values = {role: [X.obs[name].to_numpy() for name in each] for role, each in named.items()}
        elif is_sparse(first) or as_frame(first) is not None or (isinstance(first, np.ndarray) and first.ndim == 2):
            blocks = [TableBlock(block, f"block {i}") for i, block in enumerate(as_blocks(X))]
            values = {
                role: [np.concatenate([as_array(block.find(name, role)) for block in blocks]) for name in each]
                for role, each in named.items()
            }
            columns = replace(columns, drop=(*columns.drop, *names))
        else:
            return X, y, columns, self
        roles = self.with_values(values)
        if roles.sample_weight is not None:
            weight = check_weights(roles.sample_weight)
            roles = replace(roles, sample_weight=weight)
            if not weight.all():
                X, y, roles = _without_rows(X, y, roles, weight > 0)
        return X, y, columns, roles

    def open(self, X: Any) -> ReadDesign:
        """Return a function that returns the study design of all rows; for a stream, call it after the first pass."""
        named = self.columns()
        if named and not isinstance(X, TableStream):
            role, names = next(iter(named.items()))
            raise ValueError(
                f"{role} is {names[0]!r}, the name of a column, but this type of X contains only features. Pass {role}"
                " as an array with one value per row."
            )
        if (
            "sample_weight" not in named
            and self.sample_weight is not None
            and not check_weights(self.sample_weight).all()
        ):
            raise ValueError(
                "sample_weight is 0 for some rows, but X is read from a file. Write the weights to a column of X and"
                " pass its name as sample_weight, or delete these rows."
            )
        if isinstance(X, TableStream):
            for role, names in named.items():
                check_is_not_target(names, X.label, role)
            X.read_also(named, *named.get("sample_weight", []))

        def read() -> Design:
            found = {role: [X.also[name] for name in each] for role, each in named.items()}
            return make_design(self.with_values(found))

        return read


def make_design(roles: Roles) -> Design:
    """Return the study design of the rows. The roles must be values, and not column names."""
    group = stratum = weight = None
    if roles.groups is not None:
        values = _as_column(roles.groups, "groups")
        if (values.dtype.kind == "f" and np.isnan(values).any()) or (
            values.dtype.kind == "O" and is_missing(values).any()
        ):
            raise ValueError(
                "groups has missing values. Assign a group to these rows, for example a different group to each row."
            )
        group = number_texts(values) if values.dtype.kind == "O" else number_by_appearance(values)
        if group.max(initial=0) == 0:
            raise ValueError("groups has only one group, so no row has neighbours. Pass at least two groups.")
    if roles.adjust_for is not None:
        stratum = make_strata([_as_numbers(_as_column(x, "adjust_for")) for x in _as_columns(roles.adjust_for)])
    if roles.sample_weight is not None:
        weight = check_weights(roles.sample_weight)
    sizes = {len(x) for x in (group, stratum, weight) if x is not None}
    if len(sizes) > 1:
        raise ValueError("groups, adjust_for and sample_weight have different numbers of rows. Pass one value per row.")
    return Design(group, stratum, weight)


def check_weights(weight: Any) -> Array:
    """Return weights as floats, divided by the largest weight; raise a ValueError if they are not valid."""
    try:
        out = _as_column(weight, "sample_weight").astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            "sample_weight must hold numbers, one for each row; got other values. Convert them to numbers."
        ) from None
    bad = out[~(np.isfinite(out) & (out >= 0))]
    if len(bad):
        raise ValueError(f"sample_weight must hold numbers of at least 0; it contains {bad[0]:g}.")
    if not out.any():
        raise ValueError("sample_weight is zero for all rows. Give at least some rows a positive weight.")
    return out / out.max()


def check_is_not_target(names: Sequence[Any], label: Any, role: str) -> None:
    """Raise a ValueError if the target is one of the columns in `names`, which have a role such as groups."""
    if label is not None and label in names:
        raise ValueError(f"Column {label!r} is the target. Pass another column as {role}.")


def _as_columns(x: Any) -> list[Any]:
    """Return a list of the columns of `adjust_for`, which may be a table, an array or a list."""
    frame = as_frame(x)
    if frame is not None:
        check_frame(frame)
        return [frame[:, j] for j in range(frame.shape[1])]
    if isinstance(x, np.ndarray) and x.ndim == 2:
        return [*x.T]
    return list(x) if isinstance(x, list | tuple) and len(x) and hasattr(x[0], "__len__") else [x]


def _as_column(x: Any, role: str) -> Array:
    out = as_array(x)
    if out.ndim != 1:
        raise ValueError(f"{role} must be one column of X, or an array with one value per row; got {type(x).__name__}.")
    return out


def _as_numbers(x: Array) -> Array:
    """Convert an array of Python numbers, dates or durations to floats, with NaN for missing values.

    Other arrays are returned unchanged.
    """
    known = ~is_missing(x) if x.dtype.kind == "O" else np.zeros(0, bool)
    if not known.any() or not all(isinstance(v, Real | Decimal | date | timedelta) for v in x[known]):
        return x
    out = np.full(len(x), np.nan)
    try:
        out[known] = [_as_number(v) for v in x[known]]
    except TypeError:  # some dates have a time zone and others do not
        return x
    return out


def _as_number(value: Any) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return (value - (EPOCH if value.tzinfo else EPOCH.replace(tzinfo=None))).total_seconds()
    return float(value.toordinal() if isinstance(value, date) else value)


def _without_rows(X: Any, y: Any, roles: Roles, used: Array) -> tuple[Any, Any, Roles]:
    """Return X, y and the roles, restricted to the rows in the mask `used`."""
    parts, first = [], 0
    for block in as_blocks(X):
        mask = used[first : first + block.shape[0]]
        frame = as_frame(block)
        parts.append(block[np.flatnonzero(mask)] if frame is None else frame.filter(mask.tolist()).to_native())
        first += block.shape[0]
    if first != len(used):
        raise ValueError(f"X has {first} rows, but sample_weight has {len(used)}. Pass one weight per row.")
    kept: dict[str, Any] = {}
    for role in ("groups", "sample_weight"):
        value = getattr(roles, role)
        kept[role] = None if value is None else _as_column(value, role)[used]
    if roles.adjust_for is not None:
        kept["adjust_for"] = [_as_column(x, "adjust_for")[used] for x in _as_columns(roles.adjust_for)]
    y = y if y is None or is_column(y) or is_integer(y) else as_array(y)[used]
    return parts[0] if len(parts) == 1 else parts, y, replace(roles, **kept)
