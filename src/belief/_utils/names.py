"""Default names of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class DefaultNames(Sequence[str]):
    """The names x0, x1, ... of unnamed features. They are created on access, because there may be millions."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(self._n))]
        if not -self._n <= i < self._n:
            raise IndexError(i)
        return f"x{int(i) % self._n}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"DefaultNames({self._n})"
