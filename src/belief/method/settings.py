"""Every setting of the method: its default, what is allowed, and what it means. The faces take them from here."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from belief._utils.validation import is_count, is_integer, is_real, is_share, is_weights, one_of, words_of
from belief.method.redundancy import MEASURES

AUTO_SAMPLE = 2_000  # sample_size="auto": to begin with; "fixed": or AUTO_SHARE of the rows, if that is more
AUTO_SHARE = 0.01
FEWEST_NEIGHBOURS, MOST_NEIGHBOURS = 10, 20  # n_neighbors="auto"
ENOUGH_PAIRS = 40_000  # k·m that small tables with a numeric target come to, as m = 2,000 with k = 20 does
# The settings of the paper, where the defaults differ, and those it names; how many features is the user's business.
PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "n_neighbors": 10, "sample_size": "fixed", "sampling": "random", "class_weight": "prior", "scale": "sigma",
        "redundancy": "mcr", "theta": "mean", "eta": 2.0, "kappa": 0.8, "batch_size": 0.25,
    }
)  # fmt: skip


def setting(default: Any, ok: Callable[[Any], bool], allowed: str, doc: str) -> Any:
    """A field with its check, what is allowed in words, and what it means."""
    return field(default=default, metadata={"ok": ok, "allowed": allowed, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one run, checked: a wrong one raises a ValueError that says what is allowed."""

    n_features_to_select: int | float | str = setting(
        10, lambda x: is_count(x) or is_share(x) or one_of("auto")(x),
        "'auto', an integer of at least 1, or a share of the features in (0, 1]",
        "how many features to select: a number, a share of all, or 'auto' (as many as can be told from noise)",
    )  # fmt: skip
    n_neighbors: int | str = setting(
        "auto", lambda x: is_count(x) or one_of("auto")(x), "'auto' or an integer of at least 1",
        "k, the neighbours taken of every class; 'auto' takes 20, or fewer where a class is small; of a numeric target"
        " 2·k in all, and more of a small table",
    )  # fmt: skip
    sample_size: int | float | str = setting(
        "auto", lambda x: is_count(x) or is_share(x) or one_of("auto", "fixed")(x),
        "'auto', 'fixed', an integer of at least 1, or a share of the rows in (0, 1]",
        "s, the rows that look for their neighbours: a number, a share of all, 'auto' (2,000, and more until the"
        " selection has settled), or 'fixed' (all rows up to 2,000, then the larger of 2,000 and 1 %)",
    )  # fmt: skip
    sampling: str = setting(
        "balanced", one_of("balanced", "random", "proportional"), "'balanced', 'random' or 'proportional'",
        "which rows: as many of every class, any, or each class by its share",
    )  # fmt: skip
    class_weight: str | Mapping[Any, float] = setting(
        "balanced", lambda x: one_of("balanced", "prior")(x) or is_weights(x),
        "'balanced', 'prior' or a mapping from classes to weights of at least 0",
        "what each class counts in the relevance: all the same, their share of the rows, or as the mapping says",
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
        "auto", one_of("auto", "standard", "sigma", "none"), "'auto', 'standard', 'sigma' or 'none'",
        "'standard': differences in standard deviations, of columns with two values in their range; 'sigma': always in"
        " standard deviations; 'none': as they are; 'auto': standard unless the data is mostly zeros",
    )  # fmt: skip
    redundancy: str | None = setting(
        "agreement", one_of(*MEASURES, None), words_of(*MEASURES, None),
        "how repetition is measured: by agreement, by the paper's mCR, or not at all",
    )  # fmt: skip
    theta: float | str = setting(
        "auto", lambda x: one_of("auto", "mean")(x) or (is_real(x) and x >= 0),
        "'auto', 'mean' or a number of at least 0",
        "θ, the weight of redundancy: of agreement a number up to 1 ('auto': 1); of mCR the mean over the selected"
        " features ('auto', 'mean'), or a number times the sum",
    )  # fmt: skip
    eta: float = setting(
        2.0, lambda x: is_real(x) and x > 0, "a number above 0",
        "η, the length of the watch list as a multiple of the features to select",
    )  # fmt: skip
    kappa: float = setting(
        0.8, lambda x: is_real(x) and 0 <= x <= 1, "a number in [0, 1]",
        "κ, the lowest collision rate that counts",
    )  # fmt: skip
    copies: str = setting(
        "keep", one_of("keep", "merge"), "'keep' or 'merge'",
        "'merge': identical rows of a class count as one, as they should where rows were copied to oversample a class",
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
        if self.redundancy is not None:
            MEASURES[self.redundancy].make_rule(self.theta)

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain values, without the source of the seed."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "random_state"}
        return {name: v.item() if isinstance(v, np.generic) else v for name, v in values.items()}

    @classmethod
    def definitions(cls) -> tuple[Field[Any], ...]:
        return fields(cls)

    # --- what the settings come to on m rows and F features ---

    def resolve_n_features(self, n_features: int) -> int:
        """|S|: how many features are asked for, of so many; all where the number is to be found."""
        n = self.n_features_to_select
        if n == "auto":
            return n_features
        return max(1, int(float(n) * n_features + 1e-9)) if is_share(n) else int(n)

    def resolve_n_neighbors(self, smallest: int) -> int:
        """k, where the smallest class has so many rows."""
        if self.n_neighbors == "auto":
            return min(MOST_NEIGHBOURS, max(FEWEST_NEIGHBOURS, smallest // 3))
        return int(self.n_neighbors)

    def resolve_n_neighbors_numeric(self, m: int) -> int:
        """k, where m rows have a numeric target: a small table has few pairs that are far, so it gets more of them."""
        if self.n_neighbors == "auto":
            return max(FEWEST_NEIGHBOURS, min(m // 3, max(MOST_NEIGHBOURS, ENOUGH_PAIRS // m)))
        return int(self.n_neighbors)

    def resolve_sample_size(self, m: int) -> int:
        """s: how many of m rows are sampled, to begin with where the sample grows."""
        if self.sample_size == "auto":
            return min(m, AUTO_SAMPLE)
        if self.sample_size == "fixed":
            return min(m, max(AUTO_SAMPLE, math.ceil(AUTO_SHARE * m - 1e-9)))
        if is_share(self.sample_size):
            return max(1, math.ceil(self.sample_size * m - 1e-9))  # type: ignore[operator]
        return min(m, int(self.sample_size))

    @property
    def grows(self) -> bool:
        """Whether the sample grows until the selection has settled; a proportional one is not the beginning of more."""
        return self.sample_size == "auto" and self.sampling != "proportional"

    def watch_list_length(self, n_select: int) -> int:
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
