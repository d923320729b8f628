"""Fields of a result that only explanations need. They are computed when one of them is first used.

Until then, the values from which they are computed are kept. If these values take much memory, the fields are computed
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from belief.engines.block.blas import limit_blas
from belief.method.arrays import Array
from belief.method.details import Details
from belief.result.pairs import FeaturePair, Points, collect_pairs

MAX_KEPT_BYTES = 2**22
MAX_KEPT_LEVELS = 1000  # category names
Levels = Mapping[float, str]  # the name of each category code


@dataclass(frozen=True)
class DeferredFields:
    """The values from which some fields of a `Result`, those in `names`, are computed."""

    names: ClassVar[tuple[str, ...]] = ("partner", "partner_share", "distributions", "pairs")
    details: Details
    points: Points | None
    levels: dict[int, Levels | None]  # of the discrete features that were selected

    @classmethod
    def read(
        cls,
        details: Details,
        selected: Array,
        discrete: Array,
        sample: tuple[Array, Array] | None,
        levels: Callable[[int], Levels | None],
    ) -> Self:
        """Read the values for the selected features.

        Parameters
        ----------
        sample : some rows, and for each row the index of its class, or the rank of a numeric target
        levels : a function of a feature that returns the names of its category codes
        """
        points = None if sample is None else Points.take(*sample, selected)
        return cls(details, points, {j: levels(j) for j in selected[discrete[selected]].tolist()})

    @property
    def is_large(self) -> bool:
        """Whether the values take so much memory that the fields should be computed at once."""
        n_levels = sum(len(x or ()) for x in self.levels.values())
        return self.details.nbytes > MAX_KEPT_BYTES or n_levels > MAX_KEPT_LEVELS

    def compute(self) -> dict[str, Any]:
        """Return the fields except `pairs`."""
        with limit_blas():  # so that the last digits do not depend on the number of threads
            found = self.details.compute()
        found["distributions"] = [x.with_level_names(self.levels.get(x.feature)) for x in found["distributions"]]
        return found

    def collect_pairs(self, interactions: Sequence[tuple[int, int, float]]) -> list[FeaturePair]:
        return [] if self.points is None else collect_pairs(self.points, interactions, self.levels)
