"""The pass by columns: a thread carries a few samples, and one number a column.

Narrow networks fill a tile badly: at width 10 a product of tiles of 16 does 2.6 times
the work, thrice to reach float32, and its operands have to change hands. Here the
columns of a sample are numbers of one thread, so that a product is width² plain
multiplications and nothing is padded or split. Only gradients, sums over samples, go
from thread to thread: of every two sums that are still spread over a warp each half of
it keeps one, so that 32 sums take 31 exchanges and end up one a thread.

One program is one warp and takes one point and every ``splits``-th block of its
samples, as in ``kernel``; here too each adds to a slot of its own.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# pyright: reportPossiblyUnboundVariable=false, reportOptionalMemberAccess=false
# pyright: reportOperatorIssue=false, reportMissingImports=false, reportAssignmentType=false

from __future__ import annotations

from theodolite.training.engines.stacked.kernel import compiled, tl

WARP = 32


@compiled
def read(place, inside, stride, width: tl.constexpr):  # noqa: ANN001, ANN201
    """Load one block of samples as a tuple of columns."""
    found = ()
    for column in tl.static_range(width):
        found = found + (tl.load(place + column * stride + inside),)  # noqa: RUF005
    return found


@compiled
def through(columns, matrix, width: tl.constexpr, turned: tl.constexpr):  # noqa: ANN001, ANN201
    """Multiply every sample by a matrix, or by its transpose."""
    made = ()
    for row in tl.static_range(width):
        one = columns[0] * tl.load(matrix + (row if turned else row * width))
        for k in tl.static_range(1, width):
            at = k * width + row if turned else row * width + k
            one += columns[k] * tl.load(matrix + at)
        made = made + (one,)  # noqa: RUF005
    return made


@compiled
def rectified(columns, width: tl.constexpr):  # noqa: ANN001, ANN201
    """Return what a ReLU lets through; NaN passes, as it does in torch."""
    made = ()
    for k in tl.static_range(width):
        made = made + (tl.where(columns[k] <= 0, 0.0, columns[k]),)  # noqa: RUF005
    return made


@compiled
def masked(columns, by, width: tl.constexpr):  # noqa: ANN001, ANN201
    """Return what a ReLU lets back, given what came out of it."""
    made = ()
    for k in tl.static_range(width):
        made = made + (tl.where(by[k] <= 0, 0.0, columns[k]),)  # noqa: RUF005
    return made


@compiled
def added(a, b, width: tl.constexpr):  # noqa: ANN001, ANN201
    """Add column by column."""
    made = ()
    for k in tl.static_range(width):
        made = made + (a[k] + b[k],)  # noqa: RUF005
    return made


@compiled
def summed(  # noqa: ANN201
    back,  # noqa: ANN001
    h,  # noqa: ANN001
    lane,  # noqa: ANN001
    width: tl.constexpr,
    first: tl.constexpr,
    count: tl.constexpr,
):
    """Sum entries ``first`` to ``first + count`` of a gradient over the samples.

    Returns one number a thread: thread t gets entry ``first + t % count``.
    """
    if count == 1:
        if first < width * width:
            sums = tl.sum(back[first // width] * h[first % width], axis=1)
        else:
            sums = tl.zeros([lane.shape[0]], tl.float32)
        return sums
    else:
        half: tl.constexpr = count // 2
        a = summed(back, h, lane, width, first, half)
        b = summed(back, h, lane, width, first + half, half)
        low = (lane & half) == 0
        kept = tl.where(low, a, b)
        given = tl.where(low, b, a)
        return kept + tl.gather(given, lane ^ half, 0)


@compiled
def add_entries(  # noqa: ANN201
    into,  # noqa: ANN001
    back,  # noqa: ANN001
    h,  # noqa: ANN001
    lane,  # noqa: ANN001
    again,  # noqa: ANN001
    width: tl.constexpr,
    first: tl.constexpr,
):
    """Add up to 32 entries of one layer's gradient to the program's slot."""
    left: tl.constexpr = width * width - first
    # Where few are left, several threads get the same, and the first of them stores.
    count: tl.constexpr = (
        32 if left > 16 else (16 if left > 8 else (8 if left > 4 else 4))
    )
    sums = summed(back, h, lane, width, first, count)
    if count < 32:
        sums += tl.gather(sums, lane ^ 16, 0)
    if count < 16:
        sums += tl.gather(sums, lane ^ 8, 0)
    if count < 8:
        sums += tl.gather(sums, lane ^ 4, 0)
    entry = first + lane
    filled = (entry < width * width) & (lane < count)
    so_far = tl.load(into + entry, filled & again, 0.0)
    tl.store(into + entry, so_far + sums, filled)


@compiled
def columns_kernel(  # noqa: ANN201
    x,  # noqa: ANN001
    y,  # noqa: ANN001
    weights,  # noqa: ANN001
    alive,  # noqa: ANN001
    scratch,  # noqa: ANN001
    slots,  # noqa: ANN001
    partial,  # noqa: ANN001
    scale,  # noqa: ANN001
    stride,  # noqa: ANN001
    tiles,  # noqa: ANN001
    splits,  # noqa: ANN001
    units,  # noqa: ANN001
    width: tl.constexpr,
    each: tl.constexpr,
    shortcut: tl.constexpr,
    skip: tl.constexpr,
    relu: tl.constexpr,
):
    """Write a program's share of its point's squared error and gradient.

    Samples that fill up the last block are zero, and so is all that comes of them.

    Args:
        x: Inputs by columns, (width, stride).
        y: Targets, the same.
        weights: (points, depth, width, width).
        alive: Which points to compute, (points,), int32.
        scratch: (programs, units, width, block), what enters each unit.
        slots: (programs, depth, width, width), gradients.
        partial: (programs,), squared errors.
        scale: Factor on the error, one over the samples.
        stride: Samples, filled up to whole blocks.
        tiles: How many blocks of ``32 each`` samples that makes.
        splits: Programs a point.
        units: Units a network.
        width: Columns of a sample.
        each: Samples a thread.
        shortcut: Matrices a unit.
        skip: Whether units add their input.
        relu: Whether there is a ReLU between matrices.
    """
    program = tl.program_id(0)
    point = program // splits
    split = program % splits
    if tl.load(alive + point) == 0:
        return
    block: tl.constexpr = 32 * each
    lane = tl.arange(0, 32)
    inside = lane[:, None] * each + tl.arange(0, each)[None, :]
    depth = units * shortcut
    # These offsets pass 2**31: whole stacks are large.
    mine = weights + point.to(tl.int64) * (depth * width * width)
    entered = scratch + program.to(tl.int64) * (units * width * block)
    slot = slots + program.to(tl.int64) * (depth * width * width)
    total = 0.0
    for tile in range(split, tiles, splits):
        now = read(x + tile * block, inside, stride, width)
        for unit in range(units):
            kept = entered + unit * (width * block)
            for k in tl.static_range(width):
                tl.store(kept + k * block + inside, now[k])
            layer = mine + unit * (shortcut * width * width)
            z = through(now, layer, width, False)
            for k in tl.static_range(1, shortcut):
                if relu:
                    z = rectified(z, width)
                z = through(z, layer + k * width * width, width, False)
            if skip:
                now = added(now, z, width)
            else:
                now = z
        wanted = read(y + tile * block, inside, stride, width)
        whole = ()
        for k in tl.static_range(width):
            error = now[k] - wanted[k]
            total += tl.sum(tl.sum(error * error, axis=1), axis=0)
            whole = whole + (error * scale,)  # noqa: RUF005
        again = tile > split
        for passed in range(units):
            unit = units - 1 - passed
            layer = mine + unit * (shortcut * width * width)
            into = slot + unit * (shortcut * width * width)
            start = read(entered + unit * (width * block), inside, block, width)
            back = whole
            for j in tl.static_range(shortcut):
                at = (shortcut - 1 - j) * width * width
                h = start
                for k in tl.static_range(shortcut - 1 - j):
                    h = through(h, layer + k * width * width, width, False)
                    if relu:
                        h = rectified(h, width)
                for first in tl.static_range(0, width * width, 32):
                    add_entries(into + at, back, h, lane, again, width, first)
                back = through(back, layer + at, width, True)
                if relu and j + 1 < shortcut:
                    back = masked(back, h, width)
            if skip:
                whole = added(whole, back, width)
            else:
                whole = back
    tl.store(partial + program, total)
