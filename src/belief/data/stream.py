"""Files as blocks of rows that can be gone through again and again, never held whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from belief._utils.lazy import importing
from belief._utils.validation import did_you_mean
from belief.data.arrow import Batch, Columns, is_dictionary, label_values, refuse_label
from belief.data.discrete import discrete_mask
from belief.data.finding import Unchanged
from belief.data.labels import Labels
from belief.data.table import refuse_too_wide
from belief.data.tabular import CsvFiles, Tabular
from belief.method.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

T = TypeVar("T")


class Stream(Protocol):
    """Blocks of rows: float arrays in C order, batches of which `whole()` makes one, or CSR matrices."""

    @property
    def names(self) -> list[str] | None:
        """The features, None where they have no names."""

    @property
    def discrete(self) -> Array:
        """Which features are discrete; known when the first block is."""

    def first(self, labels: Labels) -> Iterator[Any]:
        """The blocks, the first time: the targets of the rows go to `labels`."""

    def again(self) -> Iterator[Any]:
        """The blocks, once more."""


class TableStream:
    """The features of tables in files, but for the label."""

    def __init__(self, files: Tabular, label: str, names: Sequence[str], declared: Array) -> None:
        self.files, self.label, self.names = files, label, list(names)
        if isinstance(files, CsvFiles):
            files.refuse_mixed([n for n, is_name in zip(names, declared, strict=True) if not is_name])
        schema = files.schema
        refuse_label(schema.field(label), str(files.first))
        self._columns = Columns([schema.field(name) for name in self.names], str(files.first))
        self._columns.declare(declared)
        self.discrete, self._declared = self._columns.discrete, declared

    def first(self, labels: Labels) -> Iterator[Any]:
        labels.named |= is_dictionary(self.files.schema.field(self.label).type)
        for batch in ahead(self.files.batches([*self.names, self.label])):
            if len(batch):
                labels.add_coded(*label_values(batch.column(self.label), self.label, labels.n_rows))
                yield Batch(self._columns, batch.select(self.names))
        if not labels.n_rows:
            raise ValueError(f"{self.files.first}: has no rows.")
        self._columns.warn_of_text(self._declared)

    def levels(self, j: int) -> dict[float, str]:
        """What the codes of a feature stand for."""
        return self._columns.levels(j)

    def again(self) -> Iterator[Any]:
        for batch in ahead(self.files.batches(self.names)):
            if len(batch):
                yield Batch(self._columns, batch)


class LibsvmStream:
    """LIBSVM files. How wide they are is known when they have been read once more than the others."""

    names: list[str] | None = None

    def __init__(self, paths: Sequence[Path], discrete_features: Any) -> None:
        self._paths, self._declared = list(paths), discrete_features
        self._unchanged = Unchanged(self._paths)
        self._shape: dict[str, Any] = {}
        self.discrete = np.zeros(0, bool)

    def first(self, labels: Labels) -> Iterator[csr_array]:
        with importing():
            from belief.data.libsvm import shape_of_libsvm  # numba and SciPy come with it

        with self._unchanged.reading(*self._paths):
            n_features, zero_based = shape_of_libsvm(self._paths)
        refuse_too_wide(n_features)
        self._shape = {"n_features": n_features, "zero_based": zero_based, "dtype": np.float64}
        self.discrete = discrete_mask(self._declared, None, n_features)
        for X, y in self._blocks():
            labels.add(y)
            yield X

    def levels(self, j: int) -> dict[float, str]:
        """Numbers are their own names."""
        return {}

    def again(self) -> Iterator[csr_array]:
        return (X for X, _ in self._blocks())

    def _blocks(self) -> Iterator[tuple[csr_array, Array]]:
        from belief.data.libsvm import read_libsvm

        with self._unchanged.reading(*self._paths):
            yield from ahead(read_libsvm(self._paths, **self._shape))


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same, each made while the one before is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def position(name: str, names: Sequence[str], what: str) -> int:
    """Where a column is; where it is not, the nearest name is suggested."""
    if name not in names:
        some = f"; it has {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
        raise ValueError(f"{what}: there is no column {name!r}{did_you_mean(name, list(names)) or some}.")
    return list(names).index(name)
