"""What BELIEF is compared with, as scikit-learn selectors with its attributes: Relief, ReliefF and mRMR."""

from belief.baselines.mrmr import MRMR, mrmr
from belief.baselines.relief import Relief, ReliefF

__all__ = ["MRMR", "Relief", "ReliefF", "mrmr"]
