"""Other selection schemes that the BELIEF paper mentions, as scikit-learn selectors for the benchmarks."""

from rivals.cleaned import CleanedRelief
from rivals.gram_schmidt import GramSchmidtRelief
from rivals.kmeans import KMeansRelief
from rivals.simba import Simba

__all__ = ["CleanedRelief", "GramSchmidtRelief", "KMeansRelief", "Simba"]
