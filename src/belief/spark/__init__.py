"""The pyspark.ml face: :class:`BeliefSelector`, an Estimator, and :class:`BeliefSelectorModel`, the Model it fits.

The same pure-Python classes serve classic Spark and Spark Connect, 4.0 and newer.
"""

try:
    import pyspark.ml  # noqa: F401
except ModuleNotFoundError as missing:
    message = "belief.spark needs pyspark, the extra 'spark': pip install 'belief-fs[spark]'."
    raise ModuleNotFoundError(message) from missing

from belief.spark.selector import BeliefSelector, BeliefSelectorModel

__all__ = ["BeliefSelector", "BeliefSelectorModel"]
