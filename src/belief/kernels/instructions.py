"""Machine instructions that multiply rows of 8-bit integers and compare the products with a bound in registers.

    8 queries x 3 panels of 16 rows ──dot products──► int32 sums ──lower bound of d² <= limit──► 16 bits per panel

Numba has no dot products of 8-bit integers, so `block_candidates` emits LLVM code for them. A bit is set if the row is
a candidate: the lower bound of its distance does not exclude it from the neighbours of the query. The instruction sets
differ in the width of a panel and in the values that rows may have; the rest of the code is the same for all of them.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload

_I32, _I64, _F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()
WORD = 4  # number of 8-bit columns that are multiplied and added at once


# Numba compiles functions for the types of their arguments, so each instruction set is a type. Its fields:
# lanes : number of rows in a panel
# queries, panels : size of the block of sums that fits into the registers
# levels : largest absolute value of a rounded coordinate of a row
# offset : added to the coordinates of rows if the instruction multiplies them as unsigned numbers


class Avx512Vnni(NamedTuple):
    """The instruction vpdpbusd on 512 bits."""

    lanes: int = 16
    queries: int = 8
    panels: int = 3
    levels: int = 127
    offset: int = 128


class AvxVnni(NamedTuple):
    """The instruction vpdpbusd on 256 bits."""

    lanes: int = 8
    queries: int = 4
    panels: int = 3
    levels: int = 127
    offset: int = 128


class Avx2(NamedTuple):
    """The instruction vpmaddubsw, which adds two products of 8-bit integers to a 16-bit sum.

    Coordinates of rows are rounded to 7 bits, and an offset moves them to 1..127. Coordinates of queries lie in
    -127..127. So the sum of two products is at most 2·127·127 = 32,258, which is below 2^15, and does not saturate.
    """

    lanes: int = 8
    queries: int = 4
    panels: int = 2
    levels: int = 63
    offset: int = 64


class ArmDot(NamedTuple):
    """The instruction sdot of Arm, which multiplies two signed numbers."""

    lanes: int = 4
    queries: int = 8
    panels: int = 2
    levels: int = 127
    offset: int = 0


class SignedAvx2(NamedTuple):
    """The instruction vpmaddubsw for rows and queries that both have coordinates in -127..127, without an offset.

    The first factor must be unsigned, so it is |query|. The second is the row, multiplied by the sign of the query.
    """

    lanes: int = 8
    queries: int = 4
    panels: int = 2
    levels: int = 127
    offset: int = 0


class Avx512Words(NamedTuple):
    """The 512-bit instruction vpdpwssd, which adds the products of two 16-bit columns to a sum in one step."""

    lanes: int = 16
    queries: int = 8
    panels: int = 3


class AvxWords(NamedTuple):
    """The instruction vpdpwssd on 256 bits."""

    lanes: int = 8
    queries: int = 4
    panels: int = 3


Instructions = Avx512Vnni | AvxVnni | Avx2 | ArmDot | SignedAvx2
WordInstructions = Avx512Words | AvxWords
# fastest first, each with the CPU features that it needs
_NEEDS: tuple[tuple[Instructions, frozenset[str]], ...] = (
    (Avx512Vnni(), frozenset({"avx512vnni", "avx512bw"})),
    (AvxVnni(), frozenset({"avxvnni", "avx2"})),
    (Avx2(), frozenset({"avx2"})),
    (ArmDot(), frozenset({"dotprod", "neon"})),
)


@cache
def available_instructions() -> list[Instructions]:
    """Return the instruction sets of this CPU for which numba can compile, the fastest first."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return []
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return matching_instructions(features)


def word_instructions(found: list[Instructions]) -> WordInstructions | None:
    """Return the instruction set for products of 16-bit integers; None if the CPU has none.

    `found` are the instruction sets of the CPU for products of 8-bit integers.
    """
    kinds = {type(x) for x in found}
    return Avx512Words() if Avx512Vnni in kinds else AvxWords() if AvxVnni in kinds else None


def exact_instructions() -> list[Instructions]:
    """Return the instruction sets of this CPU, the fastest first, each exact for queries and rows in -127..127.

    These are `available_instructions`, but with SignedAvx2 instead of Avx2, whose rows must lie in -63..63.
    """
    return [SignedAvx2() if isinstance(x, Avx2) else x for x in available_instructions()]


def matching_instructions(features: str) -> list[Instructions]:
    """Return the instruction sets of a CPU, given its features in the notation of LLVM, such as "+avx2,-avxvnni"."""
    present = {x[1:] for x in features.split(",") if x.startswith("+")}
    return [x for x, needed in _NEEDS if needed <= present]


@intrinsic
def block_candidates(
    typing: Any,
    kind: Any,
    rows: Any,
    panel_bytes: Any,
    queries: Any,
    query_bytes: Any,
    steps: Any,
    row_terms: Any,
    row_term_bytes: Any,
    query_terms: Any,
    shifts: Any,
    limits: Any,
    limit_bytes: Any,
    groups: Any,
    candidates: Any,
    candidate_bytes: Any,
) -> Any:
    """Set a bit for each query and row of a block if the lower bound of their d² is at most the limit of the query.

    All arrays are passed as addresses; the `_bytes` are the distances between their panels, queries or lines.

    Parameters
    ----------
    kind : the Instructions
    rows : the panels, (steps, lanes, 4) int8 each
    queries : the queries, (steps, 4) int8 each
    row_terms : four lines of float32 with one entry per row, as in `RoundedRows`
    query_terms : three float32 per query, as in `RoundedQueries`
    shifts : int32 per query, the number that the offset of the rows adds to a sum
    limits : float32 per query and group
    groups : int64 per panel, the position of the group of its rows in a line of `limits`, in bytes
    candidates : uint16 per query and panel
    """
    instructions = kind.instance_class()

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit_block_candidates(instructions, builder, *arguments[1:])
        return context.get_dummy_value()

    address, size = types.uintp, types.intp
    return types.void(
        kind, address, size, address, size, size, address, size, address, address, address, size, address, address, size
    ), generate


@intrinsic
def block_products(
    typing: Any,
    kind: Any,
    rows: Any,
    panel_bytes: Any,
    queries: Any,
    query_bytes: Any,
    steps: Any,
    out: Any,
    out_bytes: Any,
) -> Any:
    """Write the inner products of the queries and rows of a block as int32.

    Parameters
    ----------
    kind, rows, panel_bytes, queries, query_bytes, steps
        As in `block_candidates`.
    out, out_bytes
        The address of the products with the first query, and the distance to those with the next query.
    """
    instructions = kind.instance_class()

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit_block_products(instructions, builder, *arguments[1:])
        return context.get_dummy_value()

    address, size = types.uintp, types.intp
    return types.void(kind, address, size, address, size, size, address, size), generate


@intrinsic
def _count_trailing_zeros(typing: Any, bits: Any) -> Any:
    """Return the number of zeros below the lowest set bit; `bits` must not be 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


def lowest_bit(bits: Any) -> int:
    """Return the position of the lowest set bit; `bits` must not be 0."""
    return (int(bits) & -int(bits)).bit_length() - 1


# in compiled code
overload(lowest_bit)(lambda bits: lambda bits: _count_trailing_zeros(bits))  # type: ignore[call-arg]


def emit_block_candidates(n: Instructions, b: Any, *arguments: Any) -> None:
    """Emit the code of `block_candidates` with an LLVM builder."""
    block, (row_terms, row_term_bytes, query_terms, shifts) = arguments[:5], arguments[5:9]
    limits, limit_bytes, groups, candidates, candidate_bytes = arguments[9:]
    ints, floats = ir.VectorType(_I32, n.lanes), ir.VectorType(_F32, n.lanes)
    at, load = partial(_offset, b), partial(_load, b)
    sums = _emit_products(n, b, *block)
    scale, norm, error, reach = (
        [load(at(row_terms, row_term_bytes, i, 4 * n.lanes * p), floats) for p in range(n.panels)] for i in range(4)
    )
    bits, word16 = ir.IntType(n.lanes), ir.IntType(16)
    positions = [load(at(groups, _number(8), p), _I64) for p in range(n.panels)]
    for q in range(n.queries):
        two_scale, two_length, two_error = (
            _broadcast(b, load(at(query_terms, _number(12), q, 4 * i), _F32), floats) for i in range(3)
        )
        shift = _broadcast(b, load(at(shifts, _number(4), q), _I32), ints)
        line = at(limits, limit_bytes, q)
        for p in range(n.panels):
            product = b.fmul(b.fmul(b.sitofp(b.sub(sums[q][p], shift), floats), scale[p]), two_scale)
            lost = b.fadd(b.fmul(two_length, error[p]), b.fmul(two_error, reach[p]))
            low = b.fsub(b.fsub(norm[p], product), lost)
            limit = _broadcast(b, load(b.add(line, positions[p]), _F32), floats)
            is_candidate = b.bitcast(b.fcmp_unordered("<=", low, limit), bits)  # NaN counts as a candidate, to be safe
            mask = is_candidate if n.lanes == 16 else b.zext(is_candidate, word16)
            b.store(mask, b.inttoptr(at(candidates, candidate_bytes, q, 2 * p), word16.as_pointer()), align=2)


def emit_block_products(n: Instructions | WordInstructions, b: Any, *arguments: Any) -> None:
    """Emit the code of `block_products` with an LLVM builder."""
    *block, address, stride = arguments
    for q, line in enumerate(_emit_products(n, b, *block)):
        for p, products in enumerate(line):
            at = _offset(b, address, stride, q, 4 * n.lanes * p)
            b.store(products, b.inttoptr(at, products.type.as_pointer()), align=4)


def _emit_products(
    n: Instructions | WordInstructions, b: Any, rows: Any, panel_bytes: Any, queries: Any, query_bytes: Any, steps: Any
) -> list[list[Any]]:
    """Emit the code that multiplies the queries and rows of a block; return a vector for each query and panel."""
    ints = ir.VectorType(_I32, n.lanes)
    at, load = partial(_offset, b), partial(_load, b)
    before, loop, after = b.block, b.append_basic_block("loop"), b.append_basic_block("after")
    b.branch(loop)
    b.position_at_end(loop)
    step = b.phi(_I64)
    step.add_incoming(_number(0), before)
    sums = [[b.phi(ints) for _ in range(n.panels)] for _ in range(n.queries)]
    panels = [
        load(b.add(at(rows, panel_bytes, p), b.mul(step, _number(WORD * n.lanes))), ints) for p in range(n.panels)
    ]
    following = b.add(step, _number(1))
    step.add_incoming(following, loop)
    for q in range(n.queries):
        word = load(b.add(at(queries, query_bytes, q), b.mul(step, _number(WORD))), _I32)
        word = _broadcast(b, word, ints)
        for p in range(n.panels):
            total = _emit_dot(n, b, sums[q][p], panels[p], word)
            sums[q][p].add_incoming(ir.Constant(ints, [0] * n.lanes), before)
            sums[q][p].add_incoming(total, loop)
            sums[q][p] = total
    b.cbranch(b.icmp_signed("<", following, steps), loop, after)
    b.position_at_end(after)
    return sums


def _offset(b: Any, base: Any, stride: Any, i: int, more: int = 0) -> Any:
    return b.add(b.add(base, b.mul(stride, _number(i))), _number(more))


def _load(b: Any, address: Any, kind: Any) -> Any:
    return b.load(b.inttoptr(address, kind.as_pointer()), align=1)


def _broadcast(b: Any, scalar: Any, kind: Any) -> Any:
    wide = ir.Constant(kind, ir.Undefined)
    first = b.insert_element(wide, scalar, ir.Constant(_I32, 0))
    return b.shuffle_vector(first, wide, ir.Constant(ir.VectorType(_I32, kind.count), [0] * kind.count))


def _number(n: int) -> Any:
    return ir.Constant(_I64, n)


def _emit_dot(n: Instructions | WordInstructions, b: Any, total: Any, rows: Any, query: Any) -> Any:
    """Emit the code that adds the products over the columns of one word to the sums; return the new sums."""
    ints = total.type

    def call(name: str, result: Any, *arguments: Any) -> Any:
        kind = ir.FunctionType(result, [x.type for x in arguments])
        function = cgutils.get_or_insert_function(b.module, kind, name)  # type: ignore[no-untyped-call]
        return b.call(function, list(arguments))

    if isinstance(n, (Avx512Vnni, AvxVnni)):
        return call(f"llvm.x86.avx512.vpdpbusd.{32 * n.lanes}", ints, total, rows, query)
    if isinstance(n, (Avx512Words, AvxWords)):
        return call(f"llvm.x86.avx512.vpdpwssd.{32 * n.lanes}", ints, total, rows, query)
    as_bytes = ir.VectorType(ir.IntType(8), WORD * n.lanes)
    rows, query = b.bitcast(rows, as_bytes), b.bitcast(query, as_bytes)
    if isinstance(n, ArmDot):
        return call("llvm.aarch64.neon.sdot.v4i32.v16i8", ints, total, rows, query)
    shorts = ir.VectorType(ir.IntType(16), 2 * n.lanes)
    if isinstance(n, SignedAvx2):
        rows, query = (
            call("llvm.x86.avx2.psign.b", as_bytes, query, query),
            call("llvm.x86.avx2.psign.b", as_bytes, rows, query),
        )
    pairs = call("llvm.x86.avx2.pmadd.ub.sw", shorts, rows, query)
    ones = ir.Constant(shorts, [1] * 2 * n.lanes)
    return b.add(total, call("llvm.x86.avx2.pmadd.wd", ints, pairs, ones))
