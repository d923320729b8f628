"""
Text
====

Which words distinguish the documentation of NumPy, SciPy and scikit-learn? Each docstring of more
than 400 characters is a row of a sparse matrix, and each word is a column, except stop words and rare words.
"""

# %%
import inspect
from importlib import import_module

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

import belief

MODULES = {
    "NumPy": ["numpy", "numpy.linalg", "numpy.random", "numpy.fft", "numpy.ma", "numpy.polynomial"],
    "SciPy": ["scipy.linalg", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.stats", "scipy.integrate"],
    "scikit-learn": ["sklearn.linear_model", "sklearn.ensemble", "sklearn.metrics", "sklearn.cluster",
                     "sklearn.preprocessing", "sklearn.model_selection", "sklearn.decomposition"],
}  # fmt: skip


def texts(modules):
    """Return the docstrings of the functions and classes in these modules, if they have more than 400 characters."""
    there = {id(thing): thing for name in modules for thing in vars(import_module(name)).values() if callable(thing)}
    return sorted({doc for thing in there.values() if (doc := inspect.getdoc(thing)) and len(doc) > 400})


library = {name: texts(modules) for name, modules in MODULES.items()}
words = CountVectorizer(binary=True, stop_words="english", token_pattern=r"[a-z]{3,}", min_df=5)
X = words.fit_transform([text for each in library.values() for text in each]).astype(np.float32)
y = np.repeat(list(library), [len(each) for each in library.values()])
print({name: len(each) for name, each in library.items()}, X.shape, f"{X.nnz / np.prod(X.shape):.1%} non-zero")

# %%
# We select twenty words. The names of the libraries come first.
result = belief.select(X, y, 20, random_state=0)
chosen = words.get_feature_names_out()[result.selected]
print(", ".join(chosen))

# %%
# The share of the docstrings of each library that contain the word:
chosen_only = X[:, result.selected]
share = np.array([np.asarray(chosen_only[y == name].mean(axis=0)).ravel() for name in library])
figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
for values, name, color in zip(share, library, ("#2f78bd", "#cc6a1f", "#2f8f5b"), strict=True):
    ax.plot(values, np.arange(20), "o", color=color, label=name)
ax.hlines(np.arange(20), share.min(axis=0), share.max(axis=0), color="#c9d0d7", zorder=0)
ax.set_yticks(np.arange(20), chosen)
ax.invert_yaxis()
ax.set(xlabel="share of the docstrings that contain the word")
ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
ax.spines[["top", "right"]].set_visible(False)
