r"""Compiled descent of ReLU networks, a tile of samples at a time.

A tile of some groups passes through all layers and back while it lies in cache. A
layer's gradient is a table of scalar products over samples: blocks of them are summed
as vectors over the tile, folded into one vector, and added to the layer's partial sums.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..protocol import Advance, Rule
from .compiled import Shape, aligned, in_groups
from .vector import (
    SUMS,
    Emitter,
    backward,
    backward_mask,
    backward_skip,
    cgutils,
    forward,
    forward_relu,
    forward_skip,
    intrinsic,
    lane_count,
    residual,
    void,
)

TILE = 256  # samples; inputs of all layers stay in the second-level cache


def blocks(width: int, itemsize: int) -> tuple[int, int, int]:
    """Return the side of a gradient block, blocks per row, and numbers per block."""
    most = 5 if SUMS >= 24 else 3
    number = -(-width // most)
    side = -(-width // number)
    return side, number, -(-side * side // lane_count(itemsize)) * lane_count(itemsize)


class Buffers(NamedTuple):
    """Data, and what the kernels work in: flat arrays."""

    x: np.ndarray  # inputs in groups
    y: np.ndarray  # targets in groups
    samples: int  # number of samples, without padding
    h: np.ndarray  # a tile's inputs of all layers, and its output, a slot each
    g: np.ndarray  # four slots for gradients on the way back
    sums: np.ndarray  # gradients in blocks
    group: int  # numbers per group
    slot: int  # numbers a tile
    blocks: tuple[int, int, int]  # what :func:`blocks` returned


def make_buffers(
    depth: int, width: int, data: tuple[np.ndarray, np.ndarray], samples: int
) -> Buffers:
    """Return buffers for data that :func:`grouped` has cut into groups."""
    dtype = data[0].dtype
    side, number, size = blocks(width, dtype.itemsize)
    group = side * number * lane_count(dtype.itemsize)
    slot = group * max(1, TILE // lane_count(dtype.itemsize))
    sizes = ((depth + 1) * slot, 4 * slot, depth * number * number * size)
    h, g, sums = (aligned(count, dtype) for count in sizes)
    x, y = data
    return Buffers(x, y, samples, h, g, sums, group, slot, (side, number, size))


def grouped(matrix: np.ndarray) -> np.ndarray:
    """Cut samples, shape (samples, width), into groups of one vector per row."""
    itemsize = matrix.dtype.itemsize
    side, number, _ = blocks(matrix.shape[1], itemsize)
    return in_groups(
        matrix.T, rows=side * number, span=lane_count(itemsize), dtype=matrix.dtype
    )


@intrinsic
def _outer(_, width, span, out, o0, g, g0, h, h0, groups):  # noqa: ANN001, ANN202
    """Add the products g · hᵀ, summed over a tile, to blocks of a gradient."""
    signature = void(width, span, out, o0, g, g0, h, h0, groups)

    def code(context, builder, signature, args):  # noqa: ANN001, ANN202
        emit = Emitter(context, builder, signature, args)
        d, s = signature.args[0].count, signature.args[1].count
        side, number, size = blocks(d, emit.itemsize)
        n = lane_count(emit.itemsize)

        def block(i, k):  # noqa: ANN001, ANN202
            sums = emit.points(side * side, n)
            with cgutils.for_range(builder, args[8]) as loop:
                for part in range(0, s, n):
                    start = emit.offset(part, (loop.index, side * number * s))
                    left, right = (
                        [
                            emit.load(
                                array,
                                emit.offset(start, (1, first), (j, side * s), (r, s)),
                                n,
                            )
                            for r in range(side)
                        ]
                        for array, first, j in ((4, args[5], i), (6, args[7], k))
                    )
                    for place, total in enumerate(sums):
                        a, b = left[place // side], right[place % side]
                        builder.store(emit.fused(a, b, builder.load(total)), total)
            totals = [builder.load(total) for total in sums]
            start = emit.offset(args[3], (i, number * size), (k, size))
            for first in range(0, side * side, n):
                folded = _folded(emit, totals[first : first + n], n)
                at = emit.offset(start, (1, first))
                emit.store(builder.fadd(emit.load(2, at, n), folded), 2, at)

        emit.times(number, lambda i: emit.times(number, lambda k: block(i, k)))
        return context.get_dummy_value()

    return signature, code


def _folded(emit, vectors, n):  # noqa: ANN001, ANN202
    """Return one vector that holds the sum of every vector, in their order.

    Two vectors become one that holds both in halves, and so on: after log2(n) stages
    entry j is the sum of vector j.
    """
    rows = [*vectors, *[None] * (n - len(vectors))]
    stride = n // 2
    while stride:
        low = [j + (n - stride) * bool(j & stride) for j in range(n)]
        high = [j + stride if not j & stride else n + j for j in range(n)]
        merged = []
        for i in range(stride):
            a, b = rows[i], rows[i + stride]
            if a is None:
                merged.append(None)
                continue
            b = emit.zero(n) if b is None else b
            merged.append(
                emit.builder.fadd(emit.pick(a, b, low), emit.pick(a, b, high))
            )
        rows, stride = merged, stride // 2
    return rows[0]


@njit(cache=True, nogil=True, error_model="numpy")
def _forward(
    shape: Shape, buffers: Buffers, w: np.ndarray, w0: int, depth: int, groups: int
) -> None:
    """Fill the slots of h for a tile."""
    width, span, n, skip, relu = shape
    h, slot, group = buffers.h, buffers.slot, buffers.group
    d = len(width)
    for layer in range(depth):
        at = w0 + layer * d * d
        last = layer % n == n - 1
        for q in range(groups):
            b = layer * slot + q * group
            if last and skip:
                c = b - (n - 1) * slot
                forward_skip(width, span, h, b + slot, w, at, h, b, h, c)
            elif relu and not last:
                forward_relu(width, span, h, b + slot, w, at, h, b, h, b)
            else:
                forward(width, span, h, b + slot, w, at, h, b, h, b)


@njit(cache=True, nogil=True, error_model="numpy")
def _backward(
    shape: Shape, buffers: Buffers, w: np.ndarray, w0: int, depth: int, groups: int
) -> None:
    """Propagate a tile's residual back and add to the gradients."""
    width, span, n, skip, relu = shape
    h, g, slot, group = buffers.h, buffers.g, buffers.slot, buffers.group
    d, size = len(width), buffers.sums.size // depth
    for i in range(groups * group):
        g[i] = h[depth * slot + i]
    unit, inner = 0, 0  # slots of g: the unit's gradient in 0 or 1, inner in 2 or 3
    for layer in range(depth - 1, -1, -1):
        here, first = layer * slot, layer % n == 0
        _outer(
            width, span, buffers.sums, layer * size, g, inner * slot, h, here, groups
        )
        to = 1 - unit if first else 2 + (inner == 2)
        at = w0 + layer * d * d
        for q in range(groups if layer else 0):
            o, b = to * slot + q * group, inner * slot + q * group
            if first and skip:
                c = unit * slot + q * group
                backward_skip(width, span, g, o, w, at, g, b, g, c)
            elif relu and not first:
                backward_mask(width, span, g, o, w, at, g, b, h, here + q * group)
            else:
                backward(width, span, g, o, w, at, g, b, g, b)
        inner = to
        if first:
            unit = to


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(
    shape: Shape, buffers: Buffers, w: np.ndarray, w0: int, depth: int, learn: bool
) -> float:
    """Return the sum of squares over all tiles; with ``learn`` fill in gradients."""
    width, span, h, slot = shape.width, shape.span, buffers.h, buffers.slot
    total = 0.0
    if learn:
        buffers.sums[:] = 0
    for start in range(0, buffers.x.size, slot):
        stop = min(start + slot, buffers.x.size)
        groups = (stop - start) // buffers.group
        for i in range(stop - start):
            h[i] = buffers.x[start + i]
        _forward(shape, buffers, w, w0, depth, groups)
        squares = 0.0
        for at in range(0, stop - start, buffers.group):
            squares += residual(
                width, span, h, depth * slot + at, buffers.y, start + at
            )
        total += squares
        if learn:
            _backward(shape, buffers, w, w0, depth, groups)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _update(
    buffers: Buffers, matrix: np.ndarray, speed: np.ndarray, at: int, rule: tuple
) -> None:
    """Update the matrices of a point by the summed gradients."""
    rate, keep, decay, depth, d = rule
    side, number, size = buffers.blocks
    for layer in range(depth):
        for i in range(d):
            for k in range(d):
                block = (layer * number + i // side) * number + k // side
                place = block * size + (i % side) * side + k % side
                gradient = buffers.sums[place] / buffers.samples
                speed[at] = keep * speed[at] + (gradient + decay * matrix[at])
                matrix[at] -= rate * speed[at]
                at += 1


@njit(cache=True, nogil=True, error_model="numpy")
def advance_fused(
    shape: Shape,
    buffers: Buffers,
    weights: np.ndarray,
    velocity: np.ndarray,
    rule: Rule,
    log: Advance,
) -> None:
    """Move every point by its rates, or until it stops."""
    points, steps = rule.rates.shape
    d, size = len(shape.width), weights.size // points
    depth = size // (d * d)
    for point in range(points):
        w0 = point * size
        learn = rule.floor[point] < np.inf  # else only the loss is wanted
        for step in range(steps):
            squares = _sweep(shape, buffers, weights, w0, depth, learn)
            loss = 0.5 * squares / buffers.samples
            if loss <= rule.floor[point] or not loss <= rule.ceiling[point]:
                log.stopped[point] = loss
                break
            log.losses[point, step] = loss
            log.taken[point] = step + 1
            rate, keep = rule.rates[point, step], rule.momentum[point]
            numbers = (rate, keep, rule.weight_decay[point], depth, d)
            _update(buffers, weights, velocity, w0, numbers)
