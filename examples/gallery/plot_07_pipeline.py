"""
A pipeline with GridSearchCV
============================

The selector is a step of a scikit-learn pipeline: features are selected inside each fold, and the number of features is
tuned like any other parameter.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import belief

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
model = make_pipeline(belief.BeliefSelector(random_state=0), StandardScaler(), LogisticRegression())
numbers = [1, 2, 3, 4, 6, 8, 12, 20, 30]


def fewest(tried):
    """Return the smallest number of features within one standard error of the best score."""
    best = tried["mean_test_score"].argmax()
    least = tried["mean_test_score"][best] - tried["std_test_score"][best] / np.sqrt(5)
    return int(np.argmax(tried["mean_test_score"] >= least))


grid = {"beliefselector__n_features_to_select": numbers}
search = GridSearchCV(model, grid, cv=5, scoring="f1_macro", refit=fewest).fit(X, y)
print(search.best_params_)

# %%
mean, spread = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"] / np.sqrt(5)
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.errorbar(numbers, mean, spread, fmt="o-", color="#17487a", capsize=3)
ax.axvline(numbers[search.best_index_], color="#7f8a96", linestyle=(0, (4, 3)))
ax.set(xlabel="features selected in each fold", ylabel="macro F1, five folds")
ax.spines[["top", "right"]].set_visible(False)

# %%
# The attribute ``result_`` of the fitted selector is a ``belief.Result``, as returned by ``belief.select``.
selector = search.best_estimator_[0]
print(selector.result_.explain())
