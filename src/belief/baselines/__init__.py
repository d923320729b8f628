"""Selectors to compare BELIEF with, as scikit-learn estimators: Relief, ReliefF, RReliefF and mRMR."""

from typing import TYPE_CHECKING

from belief._utils.lazy import make_lazy_getattr
from belief.baselines.mrmr import MRMR, mrmr
from belief.baselines.relief import Relief, ReliefF
from belief.baselines.rrelieff import RReliefF

if TYPE_CHECKING:
    from belief.baselines.spark import mrmr_frame, relieff_frame

__all__ = ["MRMR", "RReliefF", "Relief", "ReliefF", "mrmr", "mrmr_frame", "relieff_frame"]

__getattr__ = make_lazy_getattr(__name__, dict.fromkeys(("mrmr_frame", "relieff_frame"), "belief.baselines.spark"))
