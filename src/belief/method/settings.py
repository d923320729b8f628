"""The settings of the method: their defaults, allowed values and descriptions.

The command line and other interfaces are generated from these definitions.
"""

from __future__ import annotations

import math
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from belief._utils.validation import is_count, is_integer, is_real, is_share, is_weights, one_of, words_of
from belief.method.redundancy import MEASURES

AUTO_SAMPLE = 2_000  # the initial sample for sample_size="auto", and the minimum for "fixed"
AUTO_SHARE = 0.01  # the share of the rows for sample_size="fixed"
MIN_AUTO_NEIGHBOURS, MAX_AUTO_NEIGHBOURS = 10, 20  # for n_neighbors="auto"
MIN_AUTO_PAIRS = 40_000  # rows times k for small tables with a numeric target, as in 2,000 rows with k = 20
# The settings of the paper, which leaves the number of features to the user.
PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "n_neighbors": 10,
        "sample_size": "fixed",
        "sampling": "random",
        "class_weight": "prior",
        "scale": "sigma",
        "redundancy": "mcr",
        "theta": "mean",
        "eta": 2.0,
        "kappa": 0.8,
        "batch_size": 0.25,
        "copies": "keep",
        "significance": None,
    }
)


def setting(default: Any, ok: Callable[[Any], bool], allowed: str, doc: str) -> Any:
    """Define a setting by its default, a test of its value, the allowed values in words, and its description."""
    return field(default=default, metadata={"ok": ok, "allowed": allowed, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one run. Invalid values raise a ValueError."""

    n_features_to_select: int | float | str = setting(
        10,
        lambda x: is_count(x) or is_share(x) or one_of("auto")(x),
        "'auto', an integer of at least 1, or a share of the features in (0, 1]",
        "number or share of features to select, or 'auto': all significant features that are not redundant",
    )
    per_class: int | None = setting(
        None,
        lambda x: x is None or is_count(x),
        "None or an integer of at least 1",
        "number of features to select for each class, by how well they separate it from the others; replaces"
        " n_features_to_select",
    )
    n_neighbors: int | str = setting(
        "auto",
        lambda x: is_count(x) or one_of("auto")(x),
        "'auto' or an integer of at least 1",
        "k, the number of neighbours in each class; 'auto' uses 20, or fewer if a class is small; with a numeric target"
        " each row has 2·k neighbours, and 'auto' uses a larger k for small tables",
    )
    sample_size: int | float | str = setting(
        "auto",
        lambda x: is_count(x) or is_share(x) or one_of("auto", "fixed")(x),
        "'auto', 'fixed', an integer of at least 1, or a share of the rows in (0, 1]",
        "number of sampled rows, or their share of all rows; 'auto': 2,000, and more until the selection converges;"
        " 'fixed': 2,000 or 1 % of the rows, whichever is larger",
    )
    sampling: str = setting(
        "balanced",
        one_of("balanced", "random", "proportional"),
        "'balanced', 'random' or 'proportional'",
        "how rows are sampled: equally many of each class, at random, or stratified by class",
    )
    class_weight: str | Mapping[Any, float] = setting(
        "balanced",
        lambda x: one_of("balanced", "prior")(x) or is_weights(x),
        "'balanced', 'prior' or a mapping from classes to weights of at least 0",
        "weight of each class in the relevance: equal, its share of the rows, or as in the mapping",
    )
    batch_size: float = setting(
        0.25,
        lambda x: is_real(x) and 0 < x <= 1,
        "a share of the sample in (0, 1]",
        "share of the sample in one batch; the watch list (largest weights) is updated after each batch",
    )
    neighborhood: str = setting(
        "per_class",
        one_of("per_class", "pooled"),
        "'per_class' or 'pooled'",
        "which rows are neighbours: the k nearest rows of every class, or the k·|C| nearest rows of any class",
    )
    scale: str = setting(
        "auto",
        one_of("auto", "standard", "sigma", "none"),
        "'auto', 'standard', 'sigma' or 'none'",
        "unit of differences. 'standard': the standard deviation, or the range of columns with two values; 'sigma':"
        " always the standard deviation; 'none': no scaling; 'auto': standard unless the data is mostly zeros",
    )
    redundancy: str | None = setting(
        "agreement",
        lambda x: one_of(*MEASURES, None)(x),
        words_of(*MEASURES, None),
        f"how the redundancy of features is measured: {', '.join(x.doc for x in MEASURES.values())}, or not at all",
    )
    theta: float | str = setting(
        "auto",
        lambda x: one_of("auto", "mean")(x) or (is_real(x) and x >= 0),
        "'auto', 'mean' or a number of at least 0",
        f"θ, the weight of redundancy: {'; '.join(x.theta_doc for x in MEASURES.values())}",
    )
    eta: float = setting(
        2.0,
        lambda x: is_real(x) and x > 0,
        "a number above 0",
        "η, the length of the watch list as a multiple of the number of features to select",
    )
    kappa: float = setting(
        0.8, lambda x: is_real(x) and 0 <= x <= 1, "a number in [0, 1]", "smaller collision rates count as 0"
    )
    copies: str = setting(
        "auto",
        one_of("auto", "keep", "merge"),
        "'auto', 'keep' or 'merge'",
        "'merge' counts identical rows of a class once, for data in which rows were duplicated; 'auto' does so if rows"
        " have copies that chance cannot explain",
    )
    significance: str | None = setting(
        "permutation",
        one_of("permutation", None),
        "'permutation' or None",
        "'permutation' tests whether each feature is relevant, by shuffles of the rows; None skips the tests",
    )
    alpha: float = setting(
        0.05,
        lambda x: is_real(x) and 0 < x < 1,
        "a number between 0 and 1",
        "features with a q-value below alpha are significant",
    )
    rounds: int | str = setting(
        "auto",
        lambda x: is_count(x) or one_of("auto")(x),
        "'auto' or an integer of at least 1",
        "number of searches in the significance test, each of which drops the weakest features; 'auto' searches until"
        " few features are left, which finds interactions among many features",
    )
    stability: int = setting(
        0,
        lambda x: is_integer(x) and (x == 0 or x >= 2),
        "0 or an integer of at least 2",
        "number of half-samples (random halves of the sampled rows) on which the selection is repeated, to measure how"
        " often each feature is selected; 0: none",
    )
    random_state: Any = setting(
        None,
        lambda x: x is None or is_integer(x) or isinstance(x, np.random.RandomState | np.random.Generator),
        "None, an integer, a numpy RandomState or a numpy Generator",
        "seed of the sample and of ties; None draws a seed, which the result reports",
    )

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not f.metadata["ok"](value):
                raise ValueError(f"{f.name} must be {f.metadata['allowed']}; got {value!r}.")
        if self.redundancy is not None:
            MEASURES[self.redundancy].make_rule(self.theta)
        if self.per_class is not None and (self.redundancy is None or self.n_features_to_select == "auto"):
            option = "redundancy=None" if self.redundancy is None else "n_features_to_select='auto'"
            raise ValueError(f"per_class={self.per_class} cannot be combined with {option}. Omit one of them.")
        if self.significance is None and self.n_features_to_select == "auto":
            raise ValueError(
                "n_features_to_select='auto' selects significant features, but significance is None. Pass a number of"
                " features, or significance='permutation'."
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, without `random_state`."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "random_state"}
        return {name: v.item() if isinstance(v, np.generic) else v for name, v in values.items()}

    @classmethod
    def definitions(cls) -> tuple[Field[Any], ...]:
        """Return the definition of each setting."""
        return fields(cls)

    # --- the settings for data of a given size ---

    def resolve_n_features(self, n_features: int) -> int:
        """Return the number of features to select out of n_features; all of them for "auto"."""
        n = self.n_features_to_select
        if n == "auto" or self.per_class is not None:
            return n_features
        return max(1, int(float(n) * n_features + 1e-9)) if is_share(n) else int(n)

    def resolve_n_neighbors(self, smallest_class: int) -> int:
        """Return k, the number of neighbours of each class, given the number of rows of the smallest class."""
        if self.n_neighbors == "auto":
            return min(MAX_AUTO_NEIGHBOURS, max(MIN_AUTO_NEIGHBOURS, smallest_class // 3))
        return int(self.n_neighbors)

    def resolve_n_neighbors_numeric(self, m: int) -> int:
        """Return k for m rows with a numeric target. Small tables have few misses, so they get more neighbours."""
        if self.n_neighbors == "auto":
            k = max(MAX_AUTO_NEIGHBOURS, MIN_AUTO_PAIRS // m)
            return max(MIN_AUTO_NEIGHBOURS, min(m // 3, k))
        return int(self.n_neighbors)

    def resolve_sample_size(self, m: int) -> int:
        """Return the number of rows to sample out of m; for a sample that grows, the initial number."""
        if self.sample_size == "auto":
            return min(m, AUTO_SAMPLE)
        if self.sample_size == "fixed":
            return min(m, max(AUTO_SAMPLE, math.ceil(AUTO_SHARE * m - 1e-9)))
        if is_share(self.sample_size):
            return max(1, math.ceil(self.sample_size * m - 1e-9))  # type: ignore[operator]
        return min(m, int(self.sample_size))

    @property
    def max_rounds(self) -> int:
        """The largest number of rounds of the significance test."""
        return sys.maxsize if self.rounds == "auto" else int(self.rounds)

    @property
    def grows(self) -> bool:
        """Whether the sample grows until the selection converges. A proportional sample cannot be extended."""
        return self.sample_size == "auto" and self.sampling != "proportional"

    def watch_list_length(self, n_select: int) -> int:
        """Return the length of the watch list, the features with the largest weights: η·n_select, rounded up."""
        return math.ceil(min(min(n_select, 2**53) * self.eta, 2.0**53) - 1e-9)  # floats are exact up to 2**53

    def draw_seed(self) -> int:
        """Return the seed of the run: `random_state` itself if it is an integer, else a number drawn from it."""
        source = self.random_state
        if source is None:
            return secrets.randbits(31)
        if isinstance(source, np.random.RandomState):
            return int(source.randint(2**31))
        if isinstance(source, np.random.Generator):
            return int(source.integers(2**31))
        return int(source)
