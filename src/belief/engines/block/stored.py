"""Rows on a device: all of them where they fit, else one span after the other, the next copied while one is used.

    source ──threads──► page-locked buffers ──streams──► device

On torch's CPU device the same calls copy plainly.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from belief.data.source import GatherSource, Source
from belief.engines.block.threads import Threads, spans
from belief.method.arrays import Array

PIECE = 2**23  # bytes that one thread copies at a time
HELD = 0.6  # the share of the free memory that rows may take


class TensorSource(GatherSource):
    """Rows that are on a device already, in any float type; what is asked for as an array is copied from there."""

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.n_rows, self.n_features = values.shape

    def longest_integer(self, j: int) -> int:
        return 0

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        wanted = columns if isinstance(columns, slice) else torch.tensor(columns, device=self.values.device)
        rows = self.values[torch.tensor(ids, device=self.values.device)][:, wanted]
        return (rows.float() if rows.element_size() < 4 else rows).cpu().numpy()


@dataclass(frozen=True)
class Span:
    """Consecutive rows on the device."""

    first: int
    values: Tensor

    @property
    def stop(self) -> int:
        return self.first + len(self.values)


class Stored:
    """The rows of a source, as a device sees them.

    Parameters
    ----------
    rows : the first and the end, where it is not to be all rows
    memory : bytes that rows may take on the device
    """

    def __init__(self, source: Source, device: torch.device, pool: Threads, rows: tuple[int, int], memory: int) -> None:
        self.source, self.device, self._pool = source, device, pool
        self.first, self.stop = rows
        self.memory, self._own = memory, threading.local()
        self._whole: Tensor | None = None
        if isinstance(source, TensorSource):
            self._whole = source.values[self.first : self.stop]

    def __len__(self) -> int:
        return self.stop - self.first

    @property
    def row_bytes(self) -> int:
        return self._dtype().itemsize * self.source.n_features

    def whole(self) -> Tensor | None:
        """All rows, kept on the device from the first time on; None where they do not fit."""
        if self._whole is None and self.row_bytes * len(self) <= self.memory:
            self._whole = self._begun((self.first, self.stop)).values
        return self._whole

    def spans(self, start: int, height: int) -> Iterator[Span]:
        """The rows from `start` on, `height` at a time; the next span is under way while one is used."""
        cut = [(a + start, b + start) for a, b in spans(self.stop - start, height)]
        under_way = self._begin(cut[0]) if cut else None
        for following in [*cut[1:], None]:
            assert under_way is not None
            span = under_way.done()
            under_way = None if following is None else self._begin(following)
            yield span

    def at(self, ids: Array) -> Tensor:
        """Some rows, by their ids."""
        whole = self.whole()
        if whole is not None:
            return whole[torch.tensor(ids - self.first, device=self.device)]
        return self.put(*self.source.rows(ids, 0, self.source.n_features))

    def put(self, X: Array, rows: Array, a: int) -> Tensor:
        """Rows as a source gives them."""
        return torch.tensor(X[rows, a : a + self.source.n_features], device=self.device)

    def _dtype(self) -> np.dtype[Any]:
        X, _, _ = self.source.rows(np.arange(self.first, min(self.first + 1, self.stop)), 0, self.source.n_features)
        return X.dtype

    # --- copying ---

    def _begun(self, rows: tuple[int, int]) -> Span:
        return self._begin(rows).done()

    def _begin(self, rows: tuple[int, int]) -> _UnderWay:
        """Have the threads copy some rows."""
        dtype = getattr(torch, self._dtype().name)
        values = torch.empty(rows[1] - rows[0], self.source.n_features, dtype=dtype, device=self.device)
        free = torch.cuda.current_stream(self.device).record_event() if self.device.type == "cuda" else None
        pieces = spans(len(values), max(1, PIECE // max(1, self.row_bytes)))
        tasks = [self._pool.submit(self._copy, values[a:b], rows[0] + a, free) for a, b in pieces]
        return _UnderWay(Span(rows[0], values), tasks)

    def _copy(self, out: Tensor, first: int, free: Any) -> None:
        """Copy the rows from `first` on; `free`: when the memory is no longer used by what was there before."""
        X, rows, a = self.source.rows(np.arange(first, first + len(out)), 0, self.source.n_features)
        lo, hi, b = int(rows[0]), int(rows[-1]) + 1, a + self.source.n_features
        if free is None:
            np.copyto(out.numpy(), X[lo:hi, a:b])
            return
        buffer, stream = self._buffer(out)
        np.copyto(buffer.numpy(), X[lo:hi, a:b])
        with torch.cuda.stream(stream):
            stream.wait_event(free)
            out.copy_(buffer, non_blocking=True)
        stream.synchronize()

    def _buffer(self, like: Tensor) -> tuple[Tensor, Any]:
        """Page-locked memory and a stream of this thread's own."""
        held = getattr(self._own, "held", None)
        if held is None or held[0].numel() < like.numel():
            room = torch.empty(like.numel(), dtype=like.dtype, pin_memory=True)
            held = self._own.held = (room, torch.cuda.Stream(self.device))
        return held[0][: like.numel()].view(like.shape), held[1]


@dataclass(frozen=True)
class _UnderWay:
    span: Span
    tasks: Sequence[Future[None]]

    def done(self) -> Span:
        for task in self.tasks:
            task.result()
        return self.span


def memory_for_rows(device: torch.device, working_memory: int) -> int:
    """Bytes that rows may take on a device: a share of what is free, or on the CPU the working memory."""
    if device.type != "cuda":
        return working_memory
    free, _ = torch.cuda.mem_get_info(device)
    return int(HELD * free)
