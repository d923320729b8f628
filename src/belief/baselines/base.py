"""What the baselines share as scikit-learn selectors: the attributes they set, and which columns they keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from belief.api import check_sizes, check_values
from belief.data.table import blocks_of
from belief.method.algorithm import constants_last
from belief.method.partials import Array, Summary
from belief.method.relevance import by_weight
from belief.method.selection import Selection
from belief.method.settings import Settings
from belief.result import Numbered


def checks(settings: Settings, names: Sequence[str] | None) -> Callable[[Summary], None]:
    """What refuses, or warns of, data that cannot be used, once it has been described."""

    def check(summary: Summary) -> None:
        F = len(summary.mean)
        check_sizes(settings, summary, F, working_memory=0)  # asked of redundancy=None only, which needs none
        check_values(summary, names or Numbered(F))

    return check


class Baseline(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A selector that has found weights and an order."""

    def transform(self, X: Any) -> Any:
        """Keep the selected columns, in the order they have in X.

        A DataFrame that stays one (`set_output`) keeps the types of its columns.
        """
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        wanted = _get_output_config("transform", self)["dense"]
        if isinstance(frame, nw.DataFrame) and frame.implementation.value == wanted:
            check_is_fitted(self)
            validate_data(self, X, reset=False, skip_check_array=True)
            return frame[:, np.flatnonzero(self.support_).tolist()].to_native()
        return super().transform(X)

    def _keep(self, X: Any, y: Any, weights: Array, found: Selection, constant: Array, n: int) -> None:
        """Set what ends in an underscore; constant features come after all others."""
        # sets n_features_in_ and feature_names_in_, by the first block; reads no value
        validate_data(self, blocks_of(X)[0], y, skip_check_array=True)
        found = constants_last(found, constant, n)
        self.weights_, self.selected_, self.scores_ = weights, found.selected, found.scores
        self.support_ = np.zeros(len(weights), bool)
        self.support_[self.selected_] = True
        left = np.flatnonzero(~self.support_)
        order = [self.selected_, by_weight(weights, left[~constant[left]]), left[constant[left]]]
        self.ranking_ = np.empty(len(weights), np.int64)
        self.ranking_[np.concatenate(order)] = np.arange(1, len(weights) + 1)

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
