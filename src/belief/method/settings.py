"""Every setting of the method: its default, what is allowed, and what it means. The faces take them from here."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from belief.method.redundancy import MEASURES

AUTO_SAMPLE = 2_000  # sample_size="auto": all rows up to here, then the larger of this and AUTO_SHARE of the rows
AUTO_SHARE = 0.01


def is_integer(x: object) -> bool:
    """An integer of any kind, but not a boolean."""
    return isinstance(x, Integral) and not isinstance(x, bool | np.bool_)


def is_real(x: object) -> bool:
    """A finite number of any kind, but not a boolean."""
    return isinstance(x, Real) and not isinstance(x, bool | np.bool_) and math.isfinite(x)


def is_count(x: Any) -> bool:
    """1, 2, 3, ..."""
    return is_integer(x) and x >= 1


def is_share(x: Any) -> bool:
    """A fraction in (0, 1]; 1 is a count, 1.0 a share."""
    return is_real(x) and not is_integer(x) and 0 < x <= 1


def one_of(*options: object) -> Callable[[Any], bool]:
    """A check for one of these."""
    return lambda x: any(x is o or (isinstance(x, str) and x == o) for o in options)


def words_of(*options: object) -> str:
    """These options, in words."""
    *most, last = map(repr, options)
    return f"{', '.join(most)} or {last}"


def setting(default: Any, ok: Callable[[Any], bool], allowed: str, doc: str) -> Any:
    """A field with its check, what is allowed in words, and what it means."""
    return field(default=default, metadata={"ok": ok, "allowed": allowed, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one run, checked: a wrong one raises a ValueError that says what is allowed."""

    n_features_to_select: int | float = setting(
        10, lambda x: is_count(x) or is_share(x), "an integer of at least 1, or a share of the features in (0, 1]",
        "how many features to select: a number, or a share of all",
    )  # fmt: skip
    n_neighbors: int = setting(
        10, is_count, "an integer of at least 1",
        "k, the neighbours taken of every class",
    )  # fmt: skip
    sample_size: int | float | str = setting(
        "auto", lambda x: is_count(x) or is_share(x) or one_of("auto")(x),
        "'auto', an integer of at least 1, or a share of the rows in (0, 1]",
        "s, the rows that look for their neighbours: a number, a share of all, or 'auto' (all rows up to 2,000, then"
        " the larger of 2,000 and 1 %)",
    )  # fmt: skip
    batch_size: float = setting(
        0.25, lambda x: is_real(x) and 0 < x <= 1, "a share of the sample in (0, 1]",
        "the share of the sample that makes one batch; the watch list is renewed after each",
    )  # fmt: skip
    neighborhood: str = setting(
        "per_class", one_of("per_class", "pooled"), "'per_class' or 'pooled'",
        "the k nearest rows of every class, or the k·|C| nearest whatever their class",
    )  # fmt: skip
    scale: str = setting(
        "auto", one_of("auto", "standard", "none"), "'auto', 'standard' or 'none'",
        "divide differences by the standard deviation, or not; 'auto' does unless the data is mostly zeros",
    )  # fmt: skip
    redundancy: str | None = setting(
        "mcr", one_of(*MEASURES, None), words_of(*MEASURES, None),
        "make features pay for repeating a selected one (mCR), or rank by relevance alone",
    )  # fmt: skip
    theta: float | str = setting(
        "mean", lambda x: one_of("mean")(x) or (is_real(x) and x >= 0), "'mean' or a number of at least 0",
        "θ, the weight of redundancy: 'mean' takes the mean over the selected features, a number multiplies the sum",
    )  # fmt: skip
    eta: float = setting(
        2.0, lambda x: is_real(x) and x > 0, "a number above 0",
        "η, the length of the watch list as a multiple of the features to select",
    )  # fmt: skip
    kappa: float = setting(
        0.8, lambda x: is_real(x) and 0 <= x <= 1, "a number in [0, 1]",
        "κ, the lowest collision rate that counts",
    )  # fmt: skip
    stratify: bool = setting(
        False, lambda x: isinstance(x, bool | np.bool_), "True or False",
        "sample each class by its share, at least one row of each",
    )  # fmt: skip
    random_state: Any = setting(
        None, lambda x: x is None or is_integer(x) or isinstance(x, np.random.RandomState | np.random.Generator),
        "None, an integer, a numpy RandomState or a numpy Generator",
        "the seed of the sample and of ties; None draws one and keeps it in the result",
    )  # fmt: skip

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not f.metadata["ok"](value):
                raise ValueError(f"{f.name} must be {f.metadata['allowed']}; got {value!r}.")

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], also: Sequence[str] = ()) -> Self:
        """Settings by name; an unknown name is refused, with the nearest one there is, here or in `also`."""
        known = [f.name for f in fields(cls)]
        for name in given:
            if name not in known:
                raise TypeError(f"There is no setting {name!r}{did_you_mean(name, [*known, *also])}.")
        return cls(**given)

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain values, without the source of the seed."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "random_state"}
        return {name: v.item() if isinstance(v, np.generic) else v for name, v in values.items()}

    @classmethod
    def each(cls) -> tuple[Field[Any], ...]:
        return fields(cls)

    # --- what the settings come to on m rows and F features ---

    def select_of(self, n_features: int) -> int:
        """|S|: how many features are asked for, of so many."""
        n = self.n_features_to_select
        return max(1, int(n * n_features + 1e-9)) if is_share(n) else int(n)

    def sample_of(self, m: int) -> int:
        """s: how many of m rows are sampled."""
        if self.sample_size == "auto":
            return min(m, max(AUTO_SAMPLE, math.ceil(AUTO_SHARE * m - 1e-9)))
        if is_share(self.sample_size):
            return max(1, math.ceil(self.sample_size * m - 1e-9))  # type: ignore[operator]
        return min(m, int(self.sample_size))

    def watch_of(self, n_select: int) -> int:
        """The length of the watch list, ⌈|S|·η⌉."""
        return math.ceil(min(n_select * self.eta, 2.0**53) - 1e-9)

    def draw_seed(self) -> int:
        """The seed itself, or one drawn from `random_state`."""
        source = self.random_state
        if source is None:
            return secrets.randbits(31)
        if isinstance(source, np.random.RandomState):
            return int(source.randint(2**31))
        if isinstance(source, np.random.Generator):
            return int(source.integers(2**31))
        return int(source)


def did_you_mean(name: object, known: list[str]) -> str:
    """Suggest the nearest known name, or nothing where none is near."""
    near = get_close_matches(str(name), [str(k) for k in known], n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
