"""The scikit-learn estimator `BeliefSelector`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

import narwhals as nw
import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from belief._utils.names import DefaultNames
from belief.api import select
from belief.data.relations import check_is_eager
from belief.data.source import is_sparse
from belief.data.table import as_blocks, as_frame, as_valid_csr, count_columns
from belief.method.arrays import Array
from belief.method.settings import Settings
from belief.method.targets import CLASSIFICATION, REGRESSION
from belief.progress import Callback


class ColumnSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of selectors. The fitted attribute `support_` is the mask of the selected columns."""

    def transform(self, X: Any) -> Any:
        """Return the selected columns of X, in the order of X.

        With `set_output`, DataFrame columns keep their dtypes.
        """
        if is_sparse(X):
            as_valid_csr(X)  # raises an error if indices are invalid; SciPy does not check them
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        container = getattr(self, "_output", get_config()["transform_output"])
        if isinstance(frame, nw.DataFrame) and frame.implementation.value == container:
            check_is_fitted(self)
            validate_data(self, X, reset=False, skip_check_array=True)
            return frame[:, np.flatnonzero(self.support_).tolist()].to_native()
        return super().transform(X)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the container that `transform` returns: "default", "pandas" or "polars"; None does not change it."""
        super().set_output(transform=transform)
        if transform is not None:
            self._output = transform  # scikit-learn keeps its own copy in a private attribute
        return self

    def __sklearn_clone__(self) -> Self:
        return super().__sklearn_clone__().set_output(transform=getattr(self, "_output", None))

    def _set_fitted(self, X: Any, y: Any, scores: Array, selected: Array, order: Array) -> None:
        """Set the fitted attributes; `order` ranks all features from 1, the selected ones first."""
        # sets n_features_in_ and feature_names_in_ from the first block, without reading values
        validate_data(self, as_blocks(X)[0], y, skip_check_array=True)
        self.scores_, self.selected_, self.n_features_ = scores, selected, len(selected)
        self.ranking_ = np.maximum(order - len(selected) + 1, 1)
        self.support_ = np.zeros(len(scores), bool)
        self.support_[selected] = True

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class BeliefSelector(ColumnSelector):
    """Select relevant features that are not redundant, with BELIEF.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default=10
        The number of features to select, or their share of all features. "auto" selects all significant features
        that are not redundant.
    task : {"auto", "classification", "regression"}, default="auto"
        How to interpret the target. "auto": strings, categories, booleans and up to 50 different integers
        are classes; fractions and more than 50 different integers are numbers. `result_.task` has the outcome.
    given : names or indices of columns, default=()
        Features that are selected already. `n_features_to_select` does not count them.
    adjust_for : names or indices of columns, or array of shape (n_rows,) or (n_rows, n), default=None
        Columns to adjust for (batch, site, age). Rows with equal values in these columns form a stratum: neighbours
        come from the same stratum, and tests are stratified. The columns are not selected.
    per_class : int, default=None
        The number of features to select for each class, instead of `n_features_to_select` in all.
    n_neighbors : int or "auto", default="auto"
        The number of neighbours k per class; with a numeric target, 2·k in all. "auto": a third of the smallest class,
        but at least 10 and at most 20; more for small tables with a numeric target.
    sample_size : int, float, "auto" or "fixed", default="auto"
        The number of sampled rows, or their share of all rows. "auto" starts with 2,000 and grows until the selection
        has converged; "fixed" takes 2,000 rows or 1 %, whichever is larger. Neighbours are searched among all rows.
    sampling : {"balanced", "random", "proportional"}, default="balanced"
        How to sample rows: equally many from each class, at random, or from each class in proportion to its size.
    class_weight : {"balanced", "prior"} or dict, default="balanced"
        The weight of each class in the relevance: equal, its share of the rows (as in the paper), or as given.
    batch_size : float, default=0.25
        The share of the sample in one batch. The watch list, the features with the largest weights, is updated after
        each batch.
    neighborhood : {"per_class", "pooled"}, default="per_class"
        Whether to search k neighbours in every class, or k·|C| neighbours among all rows, where |C| is the number of
        classes.
    scale : {"auto", "standard", "sigma", "none"}, default="auto"
        How to scale differences. "standard": by the standard deviation, or by the range for columns with two values;
        "sigma": always by the standard deviation (as in the paper); "none": unscaled; "auto": "standard", or "none" for
        mostly zero data.
    redundancy : {"agreement", "mcr", None}, default="agreement"
        The redundancy measure: agreement, the paper's mCR, or none.
    theta : float, "auto" or "mean", default="auto"
        The weight θ of redundancy. For "agreement": a number from 0 to 1; "auto" is 1. For "mcr": "auto" and "mean"
        subtract the mean redundancy with the selected features; a number subtracts that multiple of the sum.
    eta : float, default=2.0
        The length η of the watch list, as a multiple of the number of features to select.
    kappa : float, default=0.8
        Collision rates below κ count as 0.
    discrete_features : "auto", mask, indices or names, default="auto"
        The nominal features, whose values are only compared for equality. "auto": string, category and boolean columns.
    copies : {"auto", "keep", "merge"}, default="auto"
        "merge" counts identical rows of a class once, for data in which rows were duplicated. "auto" does so, with a
        warning, if rows have copies that chance cannot explain.
    significance : {"permutation", None}, default="permutation"
        "permutation" tests whether each feature is relevant, by shuffles of up to 2,000 rows; None skips the tests.
    alpha : float, default=0.05
        Features with a q-value (false discovery rate) below alpha are significant.
    rounds : int or "auto", default="auto"
        The number of rounds of the significance test. Each round repeats the search without the weakest features of the
        round before. "auto" continues until 16 features remain, which finds interactions among many features; 1 is
        faster.
    stability : int, default=0
        The number of half-samples (random halves of the sampled rows) on which the selection is repeated, for
        `result_.stability`.
    n_jobs : int, default=None
        The number of threads; -1: all cores, -2: all but one. None uses the available cores, and respects joblib
        contexts and OMP_NUM_THREADS.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sample and of tie breaking. None draws a seed and stores it in `result_.seed`.
    verbose : int, default=0
        1 shows a progress bar on stderr.
    working_memory : int, default=1024
        The memory in MiB that may be used in addition to the data.
    device : str, default="auto"
        The device for dense data: "cpu", "cuda" (the first GPU), "cuda:1", or several, "cuda:0,1". "auto" uses a GPU if
        torch finds one and the data is large enough to benefit. The result does not depend on the device.
    callback : callable, default=None
        Called with a `belief.progress.Progress` during the run.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        The relevance weight w of each feature.
    pvalues_ : ndarray of shape (n_features,)
        The p-value of each weight; NaN for constant features.
    feature_importances_ : ndarray of shape (n_features,)
        The relevance of each feature, scaled to sum to 1; never negative.
    selected_ : ndarray of int
        The indices of the selected features, in order of selection.
    n_features_ : int
        The number of selected features.
    support_ : ndarray of bool of shape (n_features,)
        The mask of the selected features.
    ranking_ : ndarray of int of shape (n_features,)
        1 for every selected feature, then 2, 3, ... by falling weight, as in `RFE`.
    classes_ : ndarray
        The sorted classes; only for classification.
    result_ : Result
        The full result; `result_.explain()` explains why each feature was selected or not.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of str
        The column names of X. The attribute exists only if X has column names and all of them are strings.

    Examples
    --------
    >>> from belief import BeliefSelector
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> selector = BeliefSelector(2, random_state=0).set_output(transform="pandas").fit(X, y)
    >>> list(selector.transform(X).columns)
    ['sepal width (cm)', 'petal length (cm)']
    """

    def __init__(
        self,
        n_features_to_select: int | float | str = 10,
        *,
        task: str = "auto",
        given: Any = (),
        adjust_for: Any = None,
        per_class: int | None = None,
        n_neighbors: int | str = "auto",
        sample_size: int | float | str = "auto",
        sampling: str = "balanced",
        class_weight: str | Mapping[Any, float] = "balanced",
        batch_size: float = 0.25,
        neighborhood: str = "per_class",
        scale: str = "auto",
        redundancy: str | None = "agreement",
        theta: float | str = "auto",
        eta: float = 2.0,
        kappa: float = 0.8,
        discrete_features: Any = "auto",
        copies: str = "auto",
        significance: str | None = "permutation",
        alpha: float = 0.05,
        rounds: int | str = "auto",
        stability: int = 0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        working_memory: int = 1024,
        device: str = "auto",
        callback: Callback | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.task = task
        self.given = given
        self.adjust_for = adjust_for
        self.per_class = per_class
        self.n_neighbors = n_neighbors
        self.sample_size = sample_size
        self.sampling = sampling
        self.class_weight = class_weight
        self.batch_size = batch_size
        self.neighborhood = neighborhood
        self.scale = scale
        self.redundancy = redundancy
        self.theta = theta
        self.eta = eta
        self.kappa = kappa
        self.discrete_features = discrete_features
        self.copies = copies
        self.significance = significance
        self.alpha = alpha
        self.rounds = rounds
        self.stability = stability
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.working_memory = working_memory
        self.device = device
        self.callback = callback

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Select features of X for predicting y.

        Parameters
        ----------
        X : array, memory map, DataFrame or sparse matrix of shape (n_rows, n_features), or a list of such blocks
        y : array of shape (n_rows,)
            The target: classes, or numbers to predict.
        groups : array of shape (n_rows,), default=None
            The group of each row, as in `belief.select`.
        sample_weight : array of shape (n_rows,), default=None
            The weight of each row, as in `belief.select`.

        Returns
        -------
        self
        """
        check_is_eager(X)
        given = {f.name: getattr(self, f.name) for f in fields(Settings)}
        others = "given", "adjust_for", "task", "discrete_features", "n_jobs", "verbose", "working_memory", "device"
        given |= {name: getattr(self, name) for name in (*others, "callback")}
        found = self.result_ = select(X, y, groups=groups, sample_weight=sample_weight, **given)
        n_columns, names = count_columns(X), found.feature_names
        used = np.arange(n_columns)
        if len(names) != n_columns:  # columns of lists, structs and free text are left out
            frame = as_frame(as_blocks(X)[0])
            labels = DefaultNames(n_columns) if frame is None else frame.columns
            known = {str(name): j for j, name in enumerate(labels)}
            used = np.array([known[name] for name in names])
        left_out = np.setdiff1d(np.arange(n_columns), used)
        order = np.empty(n_columns, np.int64)
        order[used], order[left_out] = found.ranking, len(used) + 1 + np.arange(len(left_out))
        self._set_fitted(X, y, _spread(found.weights, used, n_columns, 0.0), used[found.selected], order)
        self.pvalues_ = _spread(found.p_value, used, n_columns, np.nan)
        total = found.relevance.sum()
        self.feature_importances_ = _spread(found.relevance / (total if total > 0 else 1), used, n_columns, 0.0)
        if found.task == CLASSIFICATION:
            self.classes_ = found.classes
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if self.task != REGRESSION:
            tags.classifier_tags = ClassifierTags()
        if self.task != CLASSIFICATION:
            tags.regressor_tags = RegressorTags()
        return tags


def _spread(values: Array, columns: Array, n_columns: int, rest: float) -> Array:
    """Return an array with one entry per column of X: `values` for the given columns, and `rest` for the others."""
    out = np.full(n_columns, rest)
    out[columns] = values
    return out
