"""
First steps
===========

Customers of a telephone company, and whether they left. Which of the twelve columns are relevant, and which are
redundant?
"""

# %%
# The table is bundled. Strings, numbers and missing values need no preparation.
import pandas as pd

import belief

table = pd.read_csv(belief.datasets.CHURN)
left = table.pop("left")
table.head(3)

# %%
# We ask for six features, one more than are significant. The sixth is marked.
result = belief.select(table, left, 6, random_state=0)
print(result.explain())

# %%
# Each bar is the relevance of a feature, and the narrow bar is its score: the part that no selected feature has. A
# hollow bar is not significant.
ax = belief.plot.ranking(result)

# %%
# "auto" selects only the significant features.
auto = belief.select(table, left, "auto", random_state=0)
print(auto.selected_names)

# %%
# Why was the tenure in months not selected?
print(result.explain("tenure_months").reason)
