"""
Redundancy of a real table
==========================

The breast cancer table of scikit-learn has thirty columns: ten properties of cells, each as a mean, an error and a
"worst" value. Radius, perimeter and area of a cell say nearly the same. How far do they agree?
"""

# %%
# Ranked by relevance alone (``theta=0``: repetition costs nothing), the first twelve are much of a kind.
from sklearn.datasets import load_breast_cancer

import belief

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
ranked = belief.select(X, y, 12, theta=0.0, random_state=0)
ax = belief.plot.redundancy(ranked)

# %%
# A frame holds features that agree at 0.5 or more. When repetition counts, a feature that agrees that much with a
# selected one is left out, and its line names the selected one. That need not be of the same frame, as the picture has
# only twelve of the thirty columns: of a frame all may be left out.
result = belief.select(X, y, "auto", random_state=0)
print(result.explain())

# %%
# Relevance against what each keeps of it: to the left are those that only repeat.
ax = belief.plot.relevance_redundancy(result)
