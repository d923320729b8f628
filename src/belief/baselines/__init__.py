"""What BELIEF is compared with, as scikit-learn selectors with its attributes: Reliefs of several kinds, and mRMR."""

from typing import TYPE_CHECKING

from belief._utils.lazy import lazily
from belief.baselines.cleaned import CleanedRelief
from belief.baselines.kmeans import KMeansRelief
from belief.baselines.mrmr import MRMR, mrmr
from belief.baselines.orthogonal import GramSchmidtRelief
from belief.baselines.relief import Relief, ReliefF
from belief.baselines.rrelieff import RReliefF
from belief.baselines.simba import Simba

if TYPE_CHECKING:
    from belief.baselines.spark import mrmr_frame, relieff_frame

__all__ = [
    "MRMR",
    "CleanedRelief",
    "GramSchmidtRelief",
    "KMeansRelief",
    "RReliefF",
    "Relief",
    "ReliefF",
    "Simba",
    "mrmr",
    "mrmr_frame",
    "relieff_frame",
]

__getattr__ = lazily(__name__, dict.fromkeys(("mrmr_frame", "relieff_frame"), "belief.baselines.spark"))
