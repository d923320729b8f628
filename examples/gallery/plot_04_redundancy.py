"""
Redundancy of a real table
==========================

The breast cancer table of scikit-learn has thirty columns: ten properties of cells, each as a mean, an error and a
"worst" value. Radius, perimeter and area of a cell are nearly the same information. How redundant are they?
"""

# %%
# Ranked by relevance alone (``theta=0``), most of the first twelve features belong to two groups. A frame holds
# features with an agreement of 0.5 or more.
from sklearn.datasets import load_breast_cancer

import belief

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
ranked = belief.select(X, y, 12, theta=0.0, random_state=0)
ax = belief.plot.redundancy(ranked)

# %%
# By default, redundant features are not selected, and the reason names the selected feature. A whole frame can be
# missing from the selection, because its features are redundant with others of the thirty columns.
result = belief.select(X, y, "auto", random_state=0)
print(result.explain())

# %%
# Features on the left are redundant: a small share of their relevance is unique.
ax = belief.plot.relevance_redundancy(result)
