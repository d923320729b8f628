"""What every selector of this package is to scikit-learn once it knows which columns to keep."""

from __future__ import annotations

from typing import Any, Self

import narwhals as nw
import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from belief.data.table import blocks_of
from belief.method.arrays import Array


class ColumnSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A selector that has found weights and an order."""

    def transform(self, X: Any) -> Any:
        """Keep the selected columns, in the order they have in X.

        A DataFrame that stays one (`set_output`) keeps the types of its columns.
        """
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame) and frame.implementation.value == self._container():
            check_is_fitted(self)
            validate_data(self, X, reset=False, skip_check_array=True)
            return frame[:, np.flatnonzero(self.support_).tolist()].to_native()
        return super().transform(X)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose the container of what `transform` gives: "default", "pandas" or "polars"; None changes nothing."""
        super().set_output(transform=transform)
        if transform is not None:
            self._output = transform  # scikit-learn has it too, under a name that is its own
        return self

    def __sklearn_clone__(self) -> Self:
        return super().__sklearn_clone__().set_output(transform=getattr(self, "_output", None))

    def _container(self) -> str:
        return getattr(self, "_output", get_config()["transform_output"])

    def _keep(self, X: Any, y: Any, weights: Array, selected: Array, scores: Array, ranking: Array) -> None:
        """Set what ends in an underscore."""
        # sets n_features_in_ and feature_names_in_, by the first block; reads no value
        validate_data(self, blocks_of(X)[0], y, skip_check_array=True)
        self.weights_, self.selected_, self.scores_, self.ranking_ = weights, selected, scores, ranking
        self.support_ = np.zeros(len(weights), bool)
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
