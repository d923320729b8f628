"""The score of selected features: three different models are fitted to them and predict the test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from belief._utils.lazy import importing
from belief.comparison.encoding import Encoding
from belief.comparison.selectors import Part
from belief.method.arrays import Array
from belief.method.targets import CLASSIFICATION

TREES = 100  # trees of gradient boosting, over all classes


def make_models(part: Part) -> dict[str, Any]:
    """Return the models for the task and the number of rows of a part, by name; they are not fitted yet."""
    with importing():
        from sklearn import ensemble, linear_model, neighbors, svm
    k, seed = min(5, len(part.y)), part.seed
    if part.task == CLASSIFICATION:
        rounds = max(10, TREES // len(np.unique(part.y)))
        boosting = ensemble.HistGradientBoostingClassifier
        return {
            "linear SVM": svm.LinearSVC(dual=False, random_state=seed),
            "5 neighbours": neighbors.KNeighborsClassifier(k, n_jobs=part.n_jobs),
            "boosted trees": boosting(max_iter=rounds, early_stopping=False, random_state=seed),
        }
    boosting = ensemble.HistGradientBoostingRegressor
    return {
        "ridge": linear_model.Ridge(),
        "5 neighbours": neighbors.KNeighborsRegressor(k, n_jobs=part.n_jobs),
        "boosted trees": boosting(max_iter=TREES // 2, early_stopping=False, random_state=seed),
    }


def score_features(train: Part, test: Part, features: Array) -> dict[str, float]:
    """Fit each model to some features of the training rows; return its macro F1 or R² on the test rows, by name."""
    with importing():
        from sklearn.metrics import f1_score, r2_score
    encoding = Encoding.of(train.X, train.discrete, features)
    X, X_test = encoding(train.X), encoding(test.X)
    with threadpool_limits(1):  # for so few rows, more threads would be slower
        predictions = {name: x.fit(X, train.y).predict(X_test) for name, x in make_models(train).items()}
    if train.task == CLASSIFICATION:
        return {name: float(f1_score(test.y, p, average="macro", zero_division=0.0)) for name, p in predictions.items()}
    return {name: float(r2_score(test.y, p)) for name, p in predictions.items()}
