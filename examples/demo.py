"""Show which columns of the bundled customer table predict who leaves, and which columns are redundant."""

import pandas as pd

import belief
from belief.datasets import CHURN

table = pd.read_csv(CHURN)
left = table.pop("left")
result = belief.select(table, left, 4, random_state=0)

print(f"{len(table)} customers, {table.shape[1]} columns, {(left == 'yes').mean():.0%} left.\n")
print(result.explain())
print("\nSelected:", ", ".join(result.selected_names))
