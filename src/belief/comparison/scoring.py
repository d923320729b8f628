"""The score of selected features: three different models are fitted to them and predict the test rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from belief._utils.lazy import importing
from belief.comparison.encoding import Encoding
from belief.comparison.selectors import Part
from belief.method.arrays import Array
from belief.method.targets import CLASSIFICATION

TREES = 100  # trees of gradient boosting, over all classes

Model = Callable[[Part], Any]  # a function that returns a model, which is not fitted yet


def models_for(task: str) -> dict[str, Model]:
    """Return the models of a task, by name."""
    return CLASSIFIERS if task == CLASSIFICATION else REGRESSORS


def score_features(train: Part, test: Part, features: Array) -> dict[str, float]:
    """Fit each model to some features of the training rows; return its macro F1 or R² on the test rows, by name."""
    with importing():
        from sklearn.metrics import f1_score, r2_score
    encoding = Encoding.of(train.X, train.discrete, features)
    X, X_test = encoding(train.X), encoding(test.X)
    with threadpool_limits(1):  # for so few rows, more threads would be slower
        predictions = {
            name: make(train).fit(X, train.y).predict(X_test) for name, make in models_for(train.task).items()
        }
    if train.task == CLASSIFICATION:
        return {name: float(f1_score(test.y, p, average="macro", zero_division=0.0)) for name, p in predictions.items()}
    return {name: float(r2_score(test.y, p)) for name, p in predictions.items()}


def _linear_svm(part: Part) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(dual=False, random_state=part.seed)


def _ridge(part: Part) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge()


def _neighbours(part: Part) -> Any:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    kind = KNeighborsClassifier if part.task == CLASSIFICATION else KNeighborsRegressor
    return kind(min(5, len(part.y)), n_jobs=part.n_jobs)


def _boosting(part: Part) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if part.task != CLASSIFICATION:
        return HistGradientBoostingRegressor(max_iter=TREES // 2, early_stopping=False, random_state=part.seed)
    rounds = max(10, TREES // len(np.unique(part.y)))
    return HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, random_state=part.seed)


CLASSIFIERS: dict[str, Model] = {"linear SVM": _linear_svm, "5 neighbours": _neighbours, "boosted trees": _boosting}
REGRESSORS: dict[str, Model] = {"ridge": _ridge, "5 neighbours": _neighbours, "boosted trees": _boosting}
