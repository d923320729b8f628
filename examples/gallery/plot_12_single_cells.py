"""
Marker genes of cell types
==========================

Select marker genes from an AnnData table, and write the result into it. The table is generated: it has 600 cells of
three types and 1,000 genes, and most counts are 0. The example needs `anndata`.
"""

import anndata
import numpy as np
import pandas as pd
from scipy import sparse

import belief

# %%
# Each type has four marker genes, of which the first two have the same counts.
rng = np.random.default_rng(0)
types = np.array(["B cell", "T cell", "monocyte"])
cell_type = rng.integers(0, 3, 600)
rate = np.full((600, 1000), 0.05)
for t in range(3):
    rate[cell_type == t, 4 * t : 4 * t + 4] = 2
counts = rng.poisson(rate)
counts[:, [1, 5, 9]] = counts[:, [0, 4, 8]]

adata = anndata.AnnData(
    sparse.csr_matrix(np.log1p(counts)),
    obs=pd.DataFrame({"cell_type": pd.Categorical(types[cell_type])}, index=[f"cell{i}" for i in range(600)]),
    var=pd.DataFrame(index=[f"gene{j}" for j in range(1000)]),
)

# %%
# The label is a column of `obs`. Only one gene of each pair of copies is selected.
result = belief.select(adata, label="cell_type", n_features_to_select=9, random_state=0)
print(result.selected_names)
print(result.explain())

# %%
# `write_to` adds the result to `adata.var` as columns, for plots and later steps.
result.write_to(adata)
print(adata.var[adata.var["belief_selected"]].sort_values("belief_rank"))

# %%
# How well each gene separates each type from the others:
ax = belief.plot.by_class(result)

# %%
# A new table with only the selected genes:
markers = adata[:, adata.var["belief_selected"]].copy()
print(markers)
