"""
Redundancy of a real table
==========================

The breast cancer table of scikit-learn has thirty columns: ten properties of cells, each as a mean, an error and a
"worst" value. Radius, perimeter and area of a cell are nearly the same information. How redundant are they?
"""

# %%
# If features are ranked by relevance alone (``theta=0``), most of the first twelve belong to two groups. Frames
# surround features with an agreement of 0.5 or more.
from sklearn.datasets import load_breast_cancer

import belief

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
ranked = belief.select(X, y, 12, theta=0.0, random_state=0)
ax = belief.plot.redundancy(ranked)

# %%
# By default, redundant features are not selected, and the reason names the selected feature. All features of a frame
# may be missing from the selection, if they are redundant with other columns.
result = belief.select(X, y, "auto", random_state=0)
print(result.explain())

# %%
# Features on the left are redundant: only a small share of their relevance is unique.
ax = belief.plot.relevance_redundancy(result)
