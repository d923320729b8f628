"""Generator of churn.csv, the bundled example: customers of a telephone company, and whether they left.

Contract, support calls, fee and tenure are relevant, tenure in days and total paid are redundant, and the other columns
are noise. Run `python -m belief.datasets.make_churn` to write the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np


def make() -> str:
    """Return the text of churn.csv."""
    rng = np.random.default_rng(2018)
    m = 600
    tenure = rng.integers(1, 73, m)
    fee = np.round(rng.normal(60, 20, m).clip(15, 120), 2)
    calls = rng.poisson(1.5, m)
    contract = rng.choice(["monthly", "yearly", "two years"], m, p=[0.55, 0.25, 0.2])
    risk = 1.1 * (contract == "monthly") - 0.8 * (contract == "two years") + 0.7 * (calls - 1.5) + 0.035 * (fee - 60)
    risk += -0.045 * (tenure - 36) - 0.9
    left = rng.random(m) < 1 / (1 + np.exp(-2 * risk))
    columns = {
        "tenure_months": tenure,
        "tenure_days": (tenure * 30.4 + rng.normal(0, 9, m)).round(),
        "monthly_fee": fee,
        "total_paid": np.round(tenure * fee * rng.normal(1, 0.02, m), 2),
        "support_calls": calls,
        "contract": contract,
        "region": rng.choice(["north", "south", "east", "west"], m),
        "paperless": rng.choice(["yes", "no"], m),
        "age": np.where(rng.random(m) < 0.08, -1, rng.integers(18, 90, m)),
        "minutes_at_night": np.round(rng.gamma(2, 40, m), 1),
        "texts_sent": rng.poisson(30, m),
        "shoe_size": rng.integers(35, 48, m),
        "left": np.where(left, "yes", "no"),
    }
    lines = [",".join(columns)]
    for i in range(m):
        lines.append(",".join("" if name == "age" and v[i] < 0 else str(v[i]) for name, v in columns.items()))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("churn.csv").write_text(make(), encoding="utf-8", newline="\n")
