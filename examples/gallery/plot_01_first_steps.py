"""
First steps
===========

Customers of a telephone company, and whether they left. Which of the twelve columns matter, and which repeat another?
"""

# %%
# The table is bundled. Strings, numbers and missing values go in as they are.
import pandas as pd

import belief

table = pd.read_csv(belief.datasets.CHURN)
left = table.pop("left")
table.head(3)

# %%
# Six features, so that we see what comes after those that matter.
result = belief.select(table, left, 6, random_state=0)
print(result.explain())

# %%
# A bar is the relevance of a feature, the narrow one what the features before it leave of that. Hollow: it cannot be
# told from noise.
ax = belief.plot.ranking(result)

# %%
# Asked for "auto", only the features that can be told from noise are selected.
print(belief.select(table, left, "auto", random_state=0).selected_names)

# %%
# Why not the tenure in months?
print(result.explain("tenure_months").reason)
