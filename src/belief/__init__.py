"""BELIEF: a fast, Relief-based feature selector that also removes redundant columns.

>>> import belief
>>> result = belief.select(X, y, 10)  # doctest: +SKIP
>>> print(result.explain())  # doctest: +SKIP

The names in `__all__` are public, here and in the public modules. They are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from belief._utils.lazy import make_lazy_getattr

if TYPE_CHECKING:
    from belief import baselines, data, datasets, plot, progress, report, spark
    from belief._utils.optional import MissingExtraError
    from belief.api import select
    from belief.comparison.compare import compare
    from belief.comparison.comparison import Comparison
    from belief.comparison.curve import SizeCurve, score_by_size
    from belief.method.settings import PAPER
    from belief.result import Result
    from belief.selector import BeliefSelector

__all__ = [
    "PAPER",
    "BeliefSelector",
    "Comparison",
    "MissingExtraError",
    "Result",
    "SizeCurve",
    "__version__",
    "baselines",
    "compare",
    "data",
    "datasets",
    "plot",
    "progress",
    "report",
    "score_by_size",
    "select",
    "spark",
]

__version__ = "0.2.0"  # read by pyproject.toml

_MODULES = ("baselines", "data", "datasets", "plot", "progress", "report", "spark")
_MODULE_OF = {
    "BeliefSelector": "belief.selector",
    "Comparison": "belief.comparison.comparison",
    "MissingExtraError": "belief._utils.optional",
    "PAPER": "belief.method.settings",
    "Result": "belief.result",
    "SizeCurve": "belief.comparison.curve",
    "compare": "belief.comparison.compare",
    "score_by_size": "belief.comparison.curve",
    "select": "belief.api",
}

__getattr__ = make_lazy_getattr(__name__, _MODULE_OF | {name: f"{__name__}.{name}" for name in _MODULES})


def __dir__() -> list[str]:
    return __all__
