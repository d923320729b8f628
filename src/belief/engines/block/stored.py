"""Rows of a source on a GPU: all rows if they fit into its memory, otherwise one span of rows after the other.

    source ──threads──► page-locked buffers ──streams──► device

Each span is copied while the previous one is used. On torch's CPU device, the same calls make plain copies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from belief.data.source import Source
from belief.engines.block.threads import Threads, spans
from belief.method.arrays import Array


class TensorSource(Source):
    """A source of rows that are on a device already, in any float type.

    Rows that are requested as arrays are copied to the host.
    """

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.n_rows, self.n_features = values.shape

    def _gather(self, ids: Array, columns: slice | Array) -> Array:
        at = columns if isinstance(columns, slice) else torch.tensor(columns, device=self.values.device)
        rows = self.values[torch.tensor(ids, device=self.values.device)][:, at]
        return (rows.float() if rows.element_size() < 4 else rows).cpu().numpy()


@dataclass(frozen=True)
class Span:
    """Consecutive rows on the device. `first` is the number of the first row."""

    first: int
    values: Tensor

    @property
    def stop(self) -> int:
        return self.first + len(self.values)


class Stored:
    """The rows of a source, or a span of them, on a device.

    Parameters
    ----------
    rows : the span as (start, stop)
    memory : bytes of device memory that rows may use
    """

    copy_bytes = 2**23  # bytes that a thread copies at a time

    def __init__(self, source: Source, device: torch.device, pool: Threads, rows: tuple[int, int], memory: int) -> None:
        self.source, self.device, self._pool = source, device, pool
        self.first, self.stop = rows
        self.memory, self._buffers = memory, threading.local()
        self._whole: Tensor | None = None
        if isinstance(source, TensorSource):
            self._whole = source.values[self.first : self.stop]

    def __len__(self) -> int:
        return self.stop - self.first

    @property
    def row_bytes(self) -> int:
        return self._dtype().itemsize * self.source.n_features

    def whole(self) -> Tensor | None:
        """Return all rows on the device, copied there by the first call; None if they do not fit."""
        if self._whole is None and self.row_bytes * len(self) <= self.memory:
            self._whole = self._start_copy((self.first, self.stop))().values
        return self._whole

    def spans(self, start: int, height: int) -> Iterator[Span]:
        """Yield the rows from `start` on, `height` at a time. Each span is copied while the previous one is used."""
        cut = [(a + start, b + start) for a, b in spans(self.stop - start, height)]
        wait = self._start_copy(cut[0])
        for following in cut[1:]:
            span, wait = wait(), self._start_copy(following)
            yield span
        yield wait()

    def at(self, ids: Array) -> Tensor:
        whole = self.whole()
        if whole is not None:
            return whole[torch.tensor(ids - self.first, device=self.device)]
        return self.copy_rows(*self.source.rows(ids, 0, self.source.n_features))

    def copy_rows(self, X: Array, rows: Array, a: int) -> Tensor:
        """Copy rows to the device. They are given as (X, rows, a), the form in which every source returns rows."""
        return torch.tensor(X[rows, a : a + self.source.n_features], device=self.device)

    def _dtype(self) -> np.dtype[Any]:
        X, _, _ = self.source.rows(np.arange(self.first, min(self.first + 1, self.stop)), 0, self.source.n_features)
        return X.dtype

    # --- copying ---

    def _start_copy(self, rows: tuple[int, int]) -> Callable[[], Span]:
        """Start copying consecutive rows to the device, in threads. Return a function that waits for the rows."""
        dtype = getattr(torch, self._dtype().name)
        values = torch.empty(rows[1] - rows[0], self.source.n_features, dtype=dtype, device=self.device)
        free = torch.cuda.current_stream(self.device).record_event() if self.device.type == "cuda" else None
        pieces = spans(len(values), max(1, self.copy_bytes // max(1, self.row_bytes)))
        tasks = [self._pool.submit(self._copy, values[a:b], rows[0] + a, free) for a, b in pieces]

        def wait() -> Span:
            for task in tasks:
                task.result()
            return Span(rows[0], values)

        return wait

    def _copy(self, out: Tensor, first: int, free: Any) -> None:
        """Copy the rows that begin at row `first` to `out`.

        Wait for the event `free` first, because the memory of `out` may be in use until then.
        """
        X, rows, a = self.source.rows(np.arange(first, first + len(out)), 0, self.source.n_features)
        lo, hi, b = int(rows[0]), int(rows[-1]) + 1, a + self.source.n_features
        if free is None:
            np.copyto(out.numpy(), X[lo:hi, a:b])
            return
        held = getattr(self._buffers, "held", None)  # the page-locked buffer of this thread, and its CUDA stream
        if held is None or held[0].numel() < out.numel():
            room = torch.empty(out.numel(), dtype=out.dtype, pin_memory=True)
            held = self._buffers.held = (room, torch.cuda.Stream(self.device))
        buffer, stream = held[0][: out.numel()].view(out.shape), held[1]
        np.copyto(buffer.numpy(), X[lo:hi, a:b])
        with torch.cuda.stream(stream):
            stream.wait_event(free)
            out.copy_(buffer, non_blocking=True)
        stream.synchronize()
