"""Example data: a bundled table, small made problems whose answer is known, and loaders for public data sets."""

from pathlib import Path
from typing import TYPE_CHECKING

from belief._utils.lazy import make_lazy_getattr

if TYPE_CHECKING:
    from belief.datasets.loaders import Dataset, load, names
    from belief.datasets.small import Problem, corral100, led, madelon, parity3plus3, sd, xor100

CHURN = Path(__file__).with_name("churn.csv")  # the bundled example: customers, and whether they left

_HOMES = {
    "loaders": ("Dataset", "load", "names"),
    "small": ("Problem", "corral100", "led", "madelon", "parity3plus3", "sd", "xor100"),
}

__all__ = [
    "CHURN",
    "Dataset",
    "Problem",
    "corral100",
    "led",
    "load",
    "madelon",
    "names",
    "parity3plus3",
    "sd",
    "xor100",
]

__getattr__ = make_lazy_getattr(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
