"""The scan for candidates on NVIDIA's Hopper, in Gluon: products are compared in registers and never written to memory.

    one warp loads tiles by TMA ──► eight warps multiply and compare them ──► candidates; programs are persistent

Tiles of 128 queries are multiplied with tiles of 256 rows. While one tile is compared, the next one is loaded.
"""

from __future__ import annotations

import torch
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from belief.kernels.gpu.points import STEP
from belief.kernels.gpu.scan import TILE

HEIGHT = 128  # number of queries in a tile
STAGES = 4  # number of slices of tiles that are loaded at a time
QUERY_TILES = 32  # number of tiles of queries that are compared with a tile of rows while it is in the cache
PACK = 8  # number of rows that share a branch


def _append(pack: int) -> str:
    """Return PTX code that appends each row whose lower bound is at most tau to the list of the query.

    Each row has a term `low`, and its lower bound is `low` minus the inner product of the row and the query. The code
    handles `pack` rows at once, and skips them with a single branch if all bounds are above tau. It has seven kinds of
    operands, each `pack` times: an unused result, the lower bound, tau, the address of the list's counter, the address
    of the list, the place of the row, and the capacity of the list.
    """

    def operand(i: int, j: int) -> str:
        return f"${i * pack + j}"

    near = "\n".join(f"setp.le.or.f32 any, {operand(1, j)}, {operand(2, j)}, any;" for j in range(pack))
    each = "\n".join(
        f"setp.le.f32 p, {operand(1, j)}, {operand(2, j)};\n"
        "mov.b32 s, 0xffffffff;\n"
        f"@p atom.global.relaxed.gpu.add.u32 s, [{operand(3, j)}], 1;\n"
        f"setp.lt.u32 p, s, {operand(6, j)};\n"
        f"mad.wide.u32 a, s, 4, {operand(4, j)};\n"
        f"@p st.global.b32 [a], {operand(5, j)};"
        for j in range(pack)
    )
    done = "\n".join(f"mov.b32 {operand(0, j)}, 0;" for j in range(pack))
    registers = ".reg .pred p, any;\n.reg .b32 s;\n.reg .b64 a;\nsetp.ne.b32 any, 0, 0;"
    return f"{{\n{registers}\n{near}\n@!any bra DONE;\n{each}\nDONE:\n{done}\n}}"


APPEND = gl.constexpr(_append(PACK))
OPERANDS = gl.constexpr(",".join(["=r"] * PACK + ["f"] * 2 * PACK + ["l"] * 2 * PACK + ["r"] * 2 * PACK))
APPEND_PACK = gl.constexpr(PACK)
ROWS = gl.constexpr(TILE)
QUERIES = gl.constexpr(HEIGHT)
SLICE = gl.constexpr(STEP)
GROUP = gl.constexpr(QUERY_TILES)


@gluon.jit
def _place(tile, q_tiles, r_tiles):
    """Return the tile of queries and the tile of rows that are multiplied in step `tile`."""
    first = tile // (GROUP * r_tiles) * GROUP
    height = gl.minimum(q_tiles - first, GROUP)
    within = tile % (GROUP * r_tiles)
    return first + within % height, within // height


@gluon.jit
def _load_tiles(q, x, pointers, sizes, buffers, K: gl.constexpr):
    n_queries, r_tiles, _ = sizes
    q_buffer, x_buffer, ready, empty = buffers
    DEPTH: gl.constexpr = q_buffer.shape[0]
    q_tiles = gl.cdiv(n_queries, QUERIES)
    step = 0
    for tile in range(gl.program_id(0), q_tiles * r_tiles, gl.num_programs(0)):
        i, j = _place(tile, q_tiles, r_tiles)
        for k in range(K // SLICE):
            at = step % DEPTH
            mbarrier.wait(empty.index(at), (step // DEPTH & 1) ^ 1)
            mbarrier.expect(ready.index(at), q.block_type.nbytes + x.block_type.nbytes)
            tma.async_copy_global_to_shared(q, [i * QUERIES, k * SLICE], ready.index(at), q_buffer.index(at))
            tma.async_copy_global_to_shared(x, [j * ROWS, k * SLICE], ready.index(at), x_buffer.index(at))
            step += 1


@gluon.jit
def _multiply(q, x, pointers, sizes, buffers, K: gl.constexpr):
    n_queries, r_tiles, capacity = sizes
    low_ptr, tau_ptr, group_ptr, count_ptr, place_ptr = pointers
    q_buffer, x_buffer, ready, empty = buffers
    DEPTH: gl.constexpr = q_buffer.shape[0]
    LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, ROWS, 16])
    q_tiles = gl.cdiv(n_queries, QUERIES)
    step = 0
    for tile in range(gl.program_id(0), q_tiles * r_tiles, gl.num_programs(0)):
        i, j = _place(tile, q_tiles, r_tiles)
        acc = gl.zeros((QUERIES, ROWS), gl.float32, LAYOUT)
        for k in range(K // SLICE):
            at = step % DEPTH
            mbarrier.wait(ready.index(at), step // DEPTH & 1)
            rows = x_buffer.index(at).permute((1, 0))
            acc = warpgroup_mma(q_buffer.index(at), rows, acc, is_async=True, use_acc=k > 0)
            acc = warpgroup_mma_wait(1, deps=(acc,))
            mbarrier.arrive(empty.index((step + DEPTH - 1) % DEPTH), pred=k > 0)
            step += 1
        query = i * QUERIES + gl.arange(0, QUERIES, gl.SliceLayout(1, LAYOUT))
        place = j * ROWS + gl.arange(0, ROWS, gl.SliceLayout(0, LAYOUT))
        line = gl.load(group_ptr + j) * n_queries + query
        low = gl.load(low_ptr + place)
        tau = gl.load(tau_ptr + line, mask=query < n_queries, other=float("-inf"))
        counter = (count_ptr + line).to(gl.int64, bitcast=True)
        start = (place_ptr + line.to(gl.int64) * capacity).to(gl.int64, bitcast=True)
        room = capacity + gl.zeros((QUERIES, ROWS), gl.int32, LAYOUT)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(empty.index((step + DEPTH - 1) % DEPTH))
        half = low[None, :] - acc
        gl.inline_asm_elementwise(
            APPEND,
            OPERANDS,
            [half, tau[:, None], counter[:, None], start[:, None], place[None, :], room],
            dtype=gl.int32,
            is_pure=False,
            pack=APPEND_PACK,
        )


@gluon.jit
def _scan(
    q,
    x,
    low_ptr,
    tau_ptr,
    group_ptr,
    count_ptr,
    place_ptr,
    n_queries,
    r_tiles,
    capacity,
    K: gl.constexpr,
    DEPTH: gl.constexpr,
):
    q_buffer = gl.allocate_shared_memory(gl.float16, [DEPTH] + q.block_type.shape, q.layout)  # noqa: RUF005
    x_buffer = gl.allocate_shared_memory(gl.float16, [DEPTH] + x.block_type.shape, x.layout)  # noqa: RUF005
    ready = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    for at in gl.static_range(DEPTH):
        mbarrier.init(ready.index(at), count=1)
        mbarrier.init(empty.index(at), count=1)
    pointers = (low_ptr, tau_ptr, group_ptr, count_ptr, place_ptr)
    sizes = (n_queries, r_tiles, capacity)
    buffers = (q_buffer, x_buffer, ready, empty)
    gl.warp_specialize(
        [(_multiply, (q, x, pointers, sizes, buffers, K)), (_load_tiles, (q, x, pointers, sizes, buffers, K))],
        [1],
        [24],
    )


def _tiles(x: Tensor, height: int) -> TensorDescriptor:
    block = [height, STEP]
    return TensorDescriptor.from_tensor(x, block, gl.NVMMASharedLayout.get_default_for(block, gl.float16))


def scan_points(
    queries: Tensor, rows: Tensor, low: Tensor, tau: Tensor, group: Tensor, capacity: int
) -> tuple[Tensor, Tensor]:
    """Return the number of candidates, (groups, queries), and the places of up to `capacity` candidates.

    Row x is a candidate for query q if low - q·x <= tau, where `low` belongs to the row, and tau to the query and the
    group of the row.
    """
    count = torch.zeros(tau.shape, dtype=torch.int32, device=tau.device)
    place = torch.empty(*tau.shape, capacity, dtype=torch.int32, device=tau.device)
    if len(queries) and len(rows):
        programs = torch.cuda.get_device_properties(tau.device).multi_processor_count
        _scan[(programs,)](
            _tiles(queries, HEIGHT),
            _tiles(rows, TILE),
            low,
            tau.contiguous(),
            group,
            count,
            place,
            len(queries),
            len(rows) // TILE,
            capacity,
            queries.shape[1],
            STAGES,
            num_warps=8,
            maxnreg=168,
        )
    return count, place
