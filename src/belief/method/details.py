"""Details of a selection that only explanations need: interaction partners, and distributions of the selected features.

A run reads the values from which they are computed, so they can be computed later without the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from belief.method.arrays import Array
from belief.method.distributions import SampledValues
from belief.method.partners import PartnerSearch


@dataclass(frozen=True)
class Details:
    """The values from which the details of a selection are computed."""

    n_selected: int
    searched: Array  # positions in the selection of the features whose partners are searched
    partners: PartnerSearch | None  # None if no feature can have a partner
    sampled: SampledValues

    @property
    def nbytes(self) -> int:
        return self.sampled.X.nbytes + (self.partners.nbytes if self.partners is not None else 0)

    def compute(self) -> dict[str, Any]:
        """Return the fields of `belief.Result` with these details, as a dictionary.

        They are the interaction partner of each selected feature (-1 for none), the share of the feature's weight that
        depends on this partner, and the distributions of the features.
        """
        partner, share = np.full(self.n_selected, -1), np.zeros(self.n_selected)
        if self.partners is not None:
            found = self.partners.run()
            at = self.searched[: len(found[0])]
            partner[at], share[at] = found
        return {"partner": partner, "partner_share": share, "distributions": self.sampled.describe()}
