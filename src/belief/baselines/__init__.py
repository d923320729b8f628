"""Selectors to compare BELIEF with, as scikit-learn estimators: Relief, ReliefF, RReliefF and mRMR."""

from belief.baselines.mrmr import MRMR, mrmr
from belief.baselines.relief import Relief, ReliefF, RReliefF

__all__ = ["MRMR", "RReliefF", "Relief", "ReliefF", "mrmr"]
