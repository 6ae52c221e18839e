"""The fused pass: a tile of samples stays in registers through all layers.

One program takes one point and every ``splits``-th tile of its samples. It keeps only
what enters each unit, recomputes what is inside, and adds each layer's gradient to a
slot of its own: no atomics, so the same numbers come out every time.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# pyright: reportPossiblyUnboundVariable=false, reportOptionalMemberAccess=false
# pyright: reportOperatorIssue=false, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # the engine asks before it loads this
    triton = tl = None


def compiled(function: Callable[..., Any]) -> Any:
    """Make a kernel where Triton is installed."""
    return function if triton is None else triton.jit(function)


@compiled
def product(a, b, precision: tl.constexpr):  # noqa: ANN001, ANN201
    """Multiply two tiles in float32 precision.

    ``split`` is three TF32 products like Triton's ``tf32x3``, but rounds by integer
    operations: the upper part keeps 10 bits of the fraction, the lower the rest.
    """
    if precision == "split":
        a_bits = a.to(tl.int32, bitcast=True) + 0x1000
        b_bits = b.to(tl.int32, bitcast=True) + 0x1000
        a_high = (a_bits & -8192).to(tl.float32, bitcast=True)
        b_high = (b_bits & -8192).to(tl.float32, bitcast=True)
        c = tl.dot(a - a_high, b_high, input_precision="tf32")
        c = tl.dot(a_high, b - b_high, c, input_precision="tf32")
        c = tl.dot(a_high, b_high, c, input_precision="tf32")
    else:
        c = tl.dot(a, b, input_precision=precision)
    return c


@compiled
def through(a, b, precision: tl.constexpr):  # noqa: ANN001, ANN201
    """Multiply a tile of samples by a matrix whose rows were loaded in thread order.

    A thread holds columns 2t and 2t + 1 of every eight of a product, and needs t and
    t + 4 of a factor: with the columns reordered so, nothing moves between threads.
    """
    rows: tl.constexpr = a.shape[0]
    columns: tl.constexpr = a.shape[1]
    a = tl.reshape(a, (rows, columns // 8, 4, 2))
    a = tl.reshape(tl.permute(a, (0, 1, 3, 2)), (rows, columns))
    return product(a, b, precision)


@compiled
def by_thread(a):  # noqa: ANN001, ANN201
    """Reorder columns so that what a thread holds of a product lies together."""
    rows: tl.constexpr = a.shape[0]
    columns: tl.constexpr = a.shape[1]
    a = tl.permute(tl.reshape(a, (rows, columns // 8, 4, 2)), (0, 2, 1, 3))
    return tl.reshape(a, (rows, columns))


@compiled
def by_column(a):  # noqa: ANN001, ANN201
    """Undo :func:`by_thread`."""
    rows: tl.constexpr = a.shape[0]
    columns: tl.constexpr = a.shape[1]
    a = tl.permute(tl.reshape(a, (rows, 4, columns // 8, 2)), (0, 2, 1, 3))
    return tl.reshape(a, (rows, columns))


@compiled
def passes_kernel(  # noqa: ANN201
    x,  # noqa: ANN001
    y,  # noqa: ANN001
    weights,  # noqa: ANN001
    alive,  # noqa: ANN001
    scratch,  # noqa: ANN001
    slots,  # noqa: ANN001
    partial,  # noqa: ANN001
    scale,  # noqa: ANN001
    samples,  # noqa: ANN001
    tiles,  # noqa: ANN001
    splits,  # noqa: ANN001
    units,  # noqa: ANN001
    width: tl.constexpr,
    padded: tl.constexpr,
    block: tl.constexpr,
    shortcut: tl.constexpr,
    skip: tl.constexpr,
    relu: tl.constexpr,
    precision: tl.constexpr,
):
    """Write a program's share of its point's squared error and gradient.

    Comparisons are with ``<=``, so that NaN passes on as it does in torch.

    Args:
        x: Inputs, (samples, width).
        y: Targets, the same.
        weights: (points, depth, width, width).
        alive: Which points to compute, (points,), int32.
        scratch: (programs, units, block, padded), what enters each unit.
        slots: (programs, depth, width, width), gradients.
        partial: (programs,), squared errors.
        scale: Factor on the error, one over the samples.
        samples: How many there are.
        tiles: How many tiles of ``block`` samples that makes.
        splits: Programs a point.
        units: Units a network.
        width: Columns of a sample.
        padded: Columns of a tile.
        block: Rows of a tile.
        shortcut: Matrices a unit.
        skip: Whether units add their input.
        relu: Whether there is a ReLU between matrices.
        precision: How tiles are multiplied.
    """
    program = tl.program_id(0)
    point = program // splits
    split = program % splits
    if tl.load(alive + point) == 0:
        return
    rows = tl.arange(0, block)[:, None]
    columns = tl.arange(0, padded)[None, :]
    down = tl.arange(0, padded)[:, None]
    inside = rows * padded + columns
    square = down * width + columns
    # Row 8i + 4r + t of a matrix in thread order is row 8i + 2t + r.
    ordered = down // 8 * 8 + down % 4 * 2 + down % 8 // 4
    across = ordered * width + columns
    turned = columns * width + ordered
    filled = (down < width) & (columns < width)
    known = (ordered < width) & (columns < width)
    # These offsets pass 2**31: whole stacks are large.
    depth = units * shortcut
    mine = weights + point.to(tl.int64) * (depth * width * width)
    entered = scratch + program.to(tl.int64) * (units * block * padded)
    slot = slots + program.to(tl.int64) * (depth * width * width)
    total = 0.0
    for tile in range(split, tiles, splits):
        place = tile * block + rows
        seen = (place < samples) & (columns < width)
        now = tl.load(x + place * width + columns, seen, 0.0)
        for unit in range(units):
            tl.store(entered + unit * (block * padded) + inside, by_thread(now))
            layer = mine + unit * (shortcut * width * width)
            z = now
            for k in tl.static_range(shortcut):
                matrix = tl.load(layer + k * width * width + turned, known, 0.0)
                z = through(z, matrix, precision)
                if relu and k + 1 < shortcut:
                    z = tl.where(z <= 0, 0.0, z)
            if skip:
                now = now + z
            else:
                now = z
        error = now - tl.load(y + place * width + columns, seen, 0.0)
        total += tl.sum(tl.sum(error * error, axis=1), axis=0)
        whole = error * scale
        again = filled & (down + tile > down + split)
        # What one thread stored another may load.
        tl.debug_barrier()
        for passed in range(units):
            unit = units - 1 - passed
            layer = mine + unit * (shortcut * width * width)
            into = slot + unit * (shortcut * width * width)
            start = by_column(tl.load(entered + unit * (block * padded) + inside))
            back = whole
            for j in tl.static_range(shortcut):
                at = (shortcut - 1 - j) * width * width
                h = start
                for k in tl.static_range(shortcut - 1 - j):
                    matrix = tl.load(layer + k * width * width + turned, known, 0.0)
                    h = through(h, matrix, precision)
                    if relu:
                        h = tl.where(h <= 0, 0.0, h)
                so_far = tl.load(into + at + square, again, 0.0)
                so_far += product(tl.trans(back), h, precision)
                tl.store(into + at + square, so_far, filled)
                matrix = tl.load(layer + at + across, known, 0.0)
                back = through(back, matrix, precision)
                if relu and j + 1 < shortcut:
                    back = tl.where(h <= 0, 0.0, back)
            if skip:
                whole = whole + back
            else:
                whole = back
        tl.debug_barrier()
    tl.store(partial + program, total)
