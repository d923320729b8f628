"""Serialisation of arrays, to send them between the driver and the executors without pickle.

    | header length | header: name, dtype, shape and offset of each array | array | array | ...   (64-byte aligned)

Unpacked arrays are views of the bytes, so blocks in memory-mapped files are not copied.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from belief.method.arrays import Array

ALIGNMENT = 64
CHECKSUM_LANES = 65521  # a prime number, so that the checksum changes if a row moves


def pack(arrays: Mapping[str, Any], parts: Sequence[Array] = ()) -> bytearray:
    """Return named arrays as bytes.

    `parts` are consecutive rows of one more array, X. They are concatenated directly in the output, which saves a copy.
    """
    if parts:
        shape = (sum(map(len, parts)), *parts[0].shape[1:])
        arrays = {**arrays, "X": np.broadcast_to(parts[0][:1, :1], shape)}  # a placeholder of the final size
    contiguous = {name: x if parts and name == "X" else np.ascontiguousarray(x) for name, x in arrays.items()}
    header, offset = {}, 0
    for name, x in contiguous.items():
        header[name] = (x.dtype.str, np.shape(arrays[name]), offset)
        offset = _align(offset + x.nbytes)
    text = json.dumps(header).encode()
    start = _align(8 + len(text))
    out = bytearray(start + offset)
    out[:8] = len(text).to_bytes(8, "little")
    out[8 : 8 + len(text)] = text
    for name, x in contiguous.items():
        position = start + header[name][2]
        if parts and name == "X":
            np.concatenate(parts, out=np.frombuffer(out, x.dtype, x.size, position).reshape(x.shape))
        elif x.nbytes:
            np.frombuffer(out, np.uint8, x.nbytes, position)[:] = x.reshape(-1).view(np.uint8)
    return out


def unpack(data: Any) -> dict[str, Array]:
    """Return the packed arrays as read-only views of `data`, which may be any object with the buffer protocol."""
    view = memoryview(data)
    length = int.from_bytes(view[:8], "little")
    start = _align(8 + length)
    out = {}
    for name, (dtype, shape, offset) in json.loads(bytes(view[8 : 8 + length])).items():
        count = int(np.prod(shape, dtype=np.int64))
        x = np.frombuffer(view, np.dtype(dtype), count, start + offset) if count else np.empty(0, np.dtype(dtype))
        out[name] = x.reshape(shape)
    return out


def compute_checksum(data: bytearray) -> int:
    """Return a checksum of packed bytes. It takes no longer than reading them from memory.

    The words of the bytes are combined by XOR in lanes; the result is the CRC-32 checksum of the lanes.
    """
    words = np.frombuffer(data, np.uint64, len(data) // 8)
    whole = len(words) // CHECKSUM_LANES * CHECKSUM_LANES
    lanes = np.zeros(CHECKSUM_LANES, np.uint64)
    if whole:
        lanes ^= np.bitwise_xor.reduce(words[:whole].reshape(-1, CHECKSUM_LANES), axis=0)
    lanes[: len(words) - whole] ^= words[whole:]
    return zlib.crc32(lanes.tobytes())


def _align(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT
