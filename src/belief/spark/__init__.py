"""The pyspark.ml interface: :class:`BeliefSelector`, an Estimator, and the :class:`BeliefSelectorModel` it fits.

The classes are pure Python and work on classic Spark 3.5 or newer, and on Spark Connect 4.0 or newer.
"""

from typing import TYPE_CHECKING, Any

from belief._utils.lazy import make_lazy_getattr
from belief._utils.optional import import_optional

if TYPE_CHECKING:
    from belief.spark.selector import BeliefSelector, BeliefSelectorModel

__all__ = ["BeliefSelector", "BeliefSelectorModel"]

_get = make_lazy_getattr(__name__, dict.fromkeys(__all__, "belief.spark.selector"))


def __getattr__(name: str) -> Any:
    if name in __all__:
        import_optional("pyspark", "spark")  # raises an error that says how to install it
        from belief.engines.spark.session import import_pyspark

        import_pyspark("pyspark.ml")
    return _get(name)
