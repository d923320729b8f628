"""ReliefF without noisy rows: rows that are outvoted by their nearest neighbours are removed first.

rows ─► nearest neighbours of each row vote on its class ─► remove the outvoted rows ─► ReliefF on the other rows

The engines of BELIEF search the neighbours, both for the votes and for ReliefF.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from belief._utils.validation import is_count
from belief.baselines.base import make_data_check, read_values
from belief.baselines.relief import range_difference
from belief.data.source import ArraySource
from belief.data.table import Table
from belief.engines.block import local_engine
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.protocols import Search
from belief.method.settings import Settings
from rivals.base import DenseReliefF


class CleanedRelief(DenseReliefF):
    """Select features by ReliefF, after removing noisy rows by a vote of their nearest neighbours (Wilson 1972).

    A row is removed if more of its nearest neighbours belong to another class than to its own. Such a row may have a
    wrong label, or lie where the classes overlap. ReliefF weights the features on the remaining rows.

    Parameters
    ----------
    n_features_to_select : int or float, default=10
        The number or share of features to select.
    clean_neighbors : int, default=3
        The number of nearest rows that vote on a row. The distance is that of ReliefF, and a row does not vote on
        itself.
    n_neighbors, sample_size, discrete_features, n_jobs, random_state, working_memory
        As in :class:`ReliefF`. The sample is drawn from the remaining rows. The attributes are those of ReliefF, too.

    Notes
    -----
    There is a vote on every row, regardless of `sample_size`. If fewer than two rows of a class would remain, all its
    rows are kept. The method removes noise, not redundancy. It is different from EN-RELIEF, which the BELIEF paper
    cites, and which removes features by an elastic net.

    References
    ----------
    D. L. Wilson, *Asymptotic properties of nearest neighbor rules using edited data*, IEEE Transactions on Systems,
    Man, and Cybernetics 2 (1972).

    Examples
    --------
    >>> from rivals import CleanedRelief
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> list(CleanedRelief(2, random_state=0).fit(X, y).get_feature_names_out())
    ['petal length (cm)', 'petal width (cm)']
    """

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        clean_neighbors: int = 3,
        n_neighbors: int = 10,
        sample_size: int | float | str = 1.0,
        discrete_features: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        working_memory: int = 1024,
    ) -> None:
        super().__init__(
            n_features_to_select, n_neighbors=n_neighbors, sample_size=sample_size, n_jobs=n_jobs,
            discrete_features=discrete_features, random_state=random_state, working_memory=working_memory,
        )  # fmt: skip
        self.clean_neighbors = clean_neighbors

    def _weights(self, table: Table, labels: Array, settings: Settings) -> tuple[Array, Array]:
        if not is_count(self.clean_neighbors):
            raise ValueError(f"clean_neighbors must be an integer of at least 1; got {self.clean_neighbors!r}.")
        values = read_values(self._rows_of(table))
        stay = staying(self._votes(table, labels, settings), labels)
        return super()._weights(replace(table, source=ArraySource(values[stay])), labels[stay], settings)

    def _votes(self, table: Table, labels: Array, settings: Settings) -> Array:
        """Return the number of nearest rows of each class, for each row."""
        resources, m = Resources(self.n_jobs, self.working_memory * 2**20), len(labels)
        with local_engine(table.source, self.classes_, labels, table.discrete, resources) as engine:
            summary = engine.describe()
            make_data_check(settings, table.names)(summary, engine.target)
            sample = engine.sample(np.array([m]), seed := settings.draw_seed())
            search = Search(min(self.clean_neighbors, m - 1), 1, seed)
            near = engine.nearest(sample, range_difference(summary, engine.discrete), search).row[:, 0]
        votes = np.zeros((m, len(self.classes_)), np.int64)
        np.add.at(votes, (sample.row[:, None], labels[near]), 1)
        return votes


def staying(votes: Array, labels: Array) -> Array:
    """Return the rows for which no class has more votes than their own class.

    If fewer than two rows of a class would remain, all its rows are returned.
    """
    stay = votes[np.arange(len(labels)), labels] == votes.max(axis=1)
    few = np.bincount(labels[stay], minlength=votes.shape[1]) < 2
    return np.flatnonzero(stay | few[labels])
