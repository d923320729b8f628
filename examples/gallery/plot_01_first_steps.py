"""
First steps
===========

Some customers of a telephone company have left. Which of the twelve columns predict this, and which are redundant?
"""

# %%
# The table is bundled. Strings, numbers and missing values need no preparation.
import pandas as pd

import belief

table = pd.read_csv(belief.datasets.CHURN)
left = table.pop("left")
table.head(3)

# %%
# We request six features, but only five are significant. The table marks the sixth.
result = belief.select(table, left, 6, random_state=0)
print(result.explain())

# %%
# The wide bars show the relevance of the features, and the narrow bars their score: the part of the relevance that no
# other selected feature has. Features with hollow bars are not significant.
ax = belief.plot.ranking(result)

# %%
# "auto" selects only the significant features.
auto = belief.select(table, left, "auto", random_state=0)
print(auto.selected_names)

# %%
# Why was the tenure in months not selected?
print(result.explain("tenure_months").reason)
