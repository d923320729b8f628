"""How arrays travel between the driver and the workers: as bytes, each with its type and shape, never as pickles.

    | length of the head | head: name, type, shape, place of each array | array | array | ...      (64 bytes aligned)

What is unpacked are views of the bytes, so a block in a memory-mapped file is never copied.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from belief.method.arrays import Array

ALIGN = 64
LANES = 65521


def pack(arrays: Mapping[str, Any], parts: Sequence[Array] = ()) -> bytearray:
    """Arrays by name, as bytes; `parts` are the rows of one more, X, which are put together there and not before."""
    if parts:
        shape = (sum(map(len, parts)), *parts[0].shape[1:])
        arrays = {**arrays, "X": np.broadcast_to(parts[0][:1, :1], shape)}  # room for it
    held = {name: x if parts and name == "X" else np.ascontiguousarray(x) for name, x in arrays.items()}
    head, at = {}, 0
    for name, x in held.items():
        head[name] = (x.dtype.str, np.shape(arrays[name]), at)
        at = _aligned(at + x.nbytes)
    text = json.dumps(head).encode()
    start = _aligned(8 + len(text))
    out = bytearray(start + at)
    out[:8] = len(text).to_bytes(8, "little")
    out[8 : 8 + len(text)] = text
    for name, x in held.items():
        place = start + head[name][2]
        if parts and name == "X":
            np.concatenate(parts, out=np.frombuffer(out, x.dtype, x.size, place).reshape(x.shape))
        elif x.nbytes:
            np.frombuffer(out, np.uint8, x.nbytes, place)[:] = x.reshape(-1).view(np.uint8)
    return out


def unpack(data: Any) -> dict[str, Array]:
    """The arrays in bytes (or anything with their buffer), as read-only views."""
    view = memoryview(data)
    length = int.from_bytes(view[:8], "little")
    start = _aligned(8 + length)
    out = {}
    for name, (kind, shape, at) in json.loads(bytes(view[8 : 8 + length])).items():
        count = int(np.prod(shape, dtype=np.int64))
        x = np.frombuffer(view, np.dtype(kind), count, start + at) if count else np.empty(0, np.dtype(kind))
        out[name] = x.reshape(shape)
    return out


def checksum(data: bytearray) -> int:
    """A checksum at the speed of memory: words folded onto a prime number of lanes, so that rows keep their places."""
    words = np.frombuffer(data, np.uint64, len(data) // 8)
    whole = len(words) // LANES * LANES
    lanes = np.zeros(LANES, np.uint64)
    if whole:
        lanes ^= np.bitwise_xor.reduce(words[:whole].reshape(-1, LANES), axis=0)
    lanes[: len(words) - whole] ^= words[whole:]
    return zlib.crc32(lanes.tobytes())


def _aligned(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
