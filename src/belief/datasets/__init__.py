"""The bundled example data."""

from pathlib import Path

CHURN = Path(__file__).with_name("churn.csv")  # customers of a telephone company, and whether they left

__all__ = ["CHURN"]
