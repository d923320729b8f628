"""What workers do with pairs of rows: those of a query are in one gathered block, so a plain block engine will do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

from belief.engines.block import block_engine
from belief.engines.block.threads import spans
from belief.engines.distributed.blocks import RowBlock, of_columns
from belief.engines.distributed.records import flat, of_features, restored
from belief.engines.distributed.tasks import Answer
from belief.engines.resources import Resources
from belief.method.arrays import Array
from belief.method.difference import Difference
from belief.method.partials import Joint, Pairs, Tally
from belief.method.protocols import BlockEngine
from belief.method.redundancy.collisions import Collisions, Watch

# by the number of a block: pairs by where their rows are in it, and which of the pairs asked about they belong to
InBlocks = Mapping[int, Sequence[tuple[int, Pairs]]]


def narrowed(pairs: Pairs) -> Pairs:
    """Pairs as they travel: their rows are numbered within a block, and kinds are few."""
    return _as_type(pairs, np.int32)


def widened(pairs: Pairs) -> Pairs:
    """As the kernels take them."""
    return _as_type(pairs, np.int64)


def _as_type(pairs: Pairs, dtype: Any) -> Pairs:
    whole = {f.name: getattr(pairs, f.name) for f in fields(pairs)}
    return replace(pairs, **{name: x.astype(dtype) for name, x in whole.items() if _is_whole(x)})


def _is_whole(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "iu"


@dataclass(frozen=True)
class TallyPairs:
    """The tally of each batch, by slices of features: that of batch t begins at t·slices."""

    pairs: InBlocks
    difference: Difference
    rates: Collisions | None
    width: int  # of a slice
    features: ClassVar[None] = None

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        sums: dict[int, Tally] = {}
        for block in blocks:
            with block_engine(block.X, block.targets, self.difference.discrete, Resources(n_jobs)) as engine:
                for t, pairs in self.pairs.get(block.number, ()):
                    (tally,) = engine.tally([widened(pairs)], self.difference, self.rates)
                    sums[t] = sums[t].merge(tally) if t in sums else tally
        F = self.difference.n_features
        cut = spans(F, self.width)
        for t, tally in sums.items():
            for i, (a, b) in enumerate(cut):
                yield t * len(cut) + i, flat(of_features(tally, F, slice(a, b)))

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return flat(reduce(Tally.merge, (restored(Tally, x) for x in answers)))


@dataclass(frozen=True)
class _FeaturesCompared:
    """Sums over the pairs of each watch, of the watched features with others."""

    pairs: InBlocks
    watched: Sequence[Array]  # by their places in `features`
    columns: Array
    features: Array  # all that are looked at, by rising number
    difference: Difference  # of these
    rates: Collisions

    @classmethod
    def of(
        cls, pairs: InBlocks, watched: Sequence[Array], columns: Array, difference: Difference, rates: Collisions
    ) -> Self:
        features = np.unique(np.concatenate([columns, *watched]))
        few = of_features(difference, difference.n_features, features)
        places = [np.searchsorted(features, x) for x in watched]
        return cls(pairs, places, np.searchsorted(features, columns), features, few, rates)

    def run(self, blocks: Iterator[RowBlock], n_jobs: int) -> Iterator[Answer]:
        sums: dict[int, dict[str, Any]] = {}
        for block in blocks:
            X = of_columns(block.X, self.features)
            with block_engine(X, block.targets, self.difference.discrete, Resources(n_jobs)) as engine:
                for t, pairs in self.pairs.get(block.number, ()):
                    found = self.ask(engine, (widened(pairs), self.watched[t]))
                    sums[t] = self.merge([sums[t], found]) if t in sums else found
        yield from sums.items()

    def ask(self, engine: BlockEngine, watch: Watch) -> dict[str, Any]:
        """The sums of one watch."""
        raise AssertionError  # each kind has its own

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        raise AssertionError


class JointSums(_FeaturesCompared):
    """The joint sums of each watch."""

    def ask(self, engine: BlockEngine, watch: Watch) -> dict[str, Any]:
        return flat(engine.joint(self.difference, self.rates, [watch], self.columns)[0])

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return flat(reduce(Joint.merge, (restored(Joint, x) for x in answers)))


class JointFloors(_FeaturesCompared):
    """Numbers not above the joint sums of each watch: of a sum, the sum of those of its parts."""

    def ask(self, engine: BlockEngine, watch: Watch) -> dict[str, Any]:
        return {"floor": engine.joint_floor(self.difference, self.rates, [watch], self.columns)[0]}

    @staticmethod
    def merge(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"floor": sum(x["floor"] for x in answers)}
