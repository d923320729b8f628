"""The pyspark.ml face: :class:`BeliefSelector`, an Estimator, and :class:`BeliefSelectorModel`, the Model it fits.

The same pure-Python classes serve classic Spark and Spark Connect, 4.0 and newer.
"""

from belief.extras import import_optional

import_optional("pyspark.ml", "spark")  # or a word on how to get it, before anything else asks for it

from belief.spark.selector import BeliefSelector, BeliefSelectorModel  # noqa: E402

__all__ = ["BeliefSelector", "BeliefSelectorModel"]
