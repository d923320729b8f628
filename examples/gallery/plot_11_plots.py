"""
All plots
=========

``belief.plot`` draws results and comparisons with matplotlib. Each function draws on the axes that are passed, or on
new ones, and returns them.
"""

# %%
# The bundled table of customers: which columns predict who leaves?
import numpy as np
import pandas as pd

import belief

# sphinx_gallery_thumbnail_number = 3
result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=8, random_state=0)

# %%
# **Ranking**: the relevance of each feature, ± two standard errors, and its score. Features that do not reach the
# dashed line are not significant.
ax = belief.plot.ranking(result)

# %%
# **How many features suffice**: the cross-validated score of models by the number of features.
curve = belief.score_by_size(str(belief.datasets.CHURN), label="left", random_state=0)
ax = belief.plot.score_by_size(curve)

# %%
# **Relevance and unique share**: features on the left are redundant with selected ones.
ax = belief.plot.relevance_redundancy(result)

# %%
# **Redundancy** of the selected features. Frames surround groups of redundant features. In this example, both tenure
# columns are selected, because ``theta=0`` ranks by relevance alone.
ax = belief.plot.redundancy(
    belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=8, theta=0.0, random_state=0)
)

# %%
# **Distribution** of a feature in each class.
ax = belief.plot.distribution(result, "contract")

# %%
# **Interactions**: lines join the features that matter only together. The class of these rows depends on whether two
# pairs of columns have the same sign.
rng = np.random.default_rng(0)
table = pd.DataFrame(rng.normal(size=(800, 6)), columns=["north", "south", "east", "west", "up", "down"])
same = (np.sign(table["north"] * table["south"]) + np.sign(table["east"] * table["west"]) > 0).astype(int)
together = belief.select(table, same, 4, random_state=0)
ax = belief.plot.interactions(together)

# %%
# **Interaction** of two features, in a sample of the rows.
ax = belief.plot.interaction(together, "north")

# %%
# **By class**: how well each feature separates each class from the others.
ax = belief.plot.by_class(result)

# %%
# **Stability**: the share of the half-samples in which each feature is selected. With 300 rows, either of the
# tenure columns may be selected.
few = pd.read_csv(belief.datasets.CHURN, nrows=300)
halves = belief.select(few, label="left", n_features_to_select=5, stability=50, random_state=0)
ax = belief.plot.stability(halves)

# %%
# **Convergence**: the order of the selected features after each batch of rows.
ax = belief.plot.convergence(result)

# %%
# **Timings** of the phases of the run.
ax = belief.plot.timings(result)

# %%
# **Comparison** of selectors: their scores, and how many features they have in common.
found = belief.compare(str(belief.datasets.CHURN), label="left", n_features_to_select=4, random_state=0)
ax = belief.plot.comparison(found)
