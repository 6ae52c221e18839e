r"""Compiled descent of deep linear networks on a square root of the moments.

One group holds the columns of the root, padded with zeros: a network of width 10 runs
on 16 samples, whatever the data. Weights lie in padded rows, so that the gradient of a
row ends in registers and moves the weights from there.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ..protocol import Advance, Rule
from .compiled import Shape, aligned, in_groups
from .vector import (
    Emitter,
    block_sums,
    intrinsic,
    padded,
    padded_backward,
    padded_backward_skip,
    padded_forward,
    padded_forward_skip,
    residual,
    row_blocks,
    void,
)

SPAN = 16


class Buffers(NamedTuple):
    """What the kernels work in: flat arrays."""

    target: np.ndarray  # targets, one slot; a slot holds the groups of one layer
    w: np.ndarray  # weights of the point at work, in padded rows
    v: np.ndarray  # its velocity
    h: np.ndarray  # inputs of all layers, and the output
    g: np.ndarray  # four slots for gradients on the way back
    turned: np.ndarray  # one slot, transposed


def make_buffers(
    depth: int, root: np.ndarray, target: np.ndarray, dtype: np.dtype
) -> Buffers:
    """Return buffers with the root of the moments in the first slot of h."""
    d, side = len(root), padded(len(root), SPAN)
    slot = side * side
    sizes = (depth * d * side, depth * d * side, (depth + 1) * slot, 4 * slot, slot)
    goal = aligned(slot, dtype)
    buffers = Buffers(goal, *(aligned(size, dtype) for size in sizes))
    for flat, matrix in ((buffers.h, root), (goal, target)):
        groups = in_groups(matrix, rows=side, span=SPAN, dtype=dtype)
        flat[: groups.size] = groups
    return buffers


@intrinsic
def _turn(_, width, span, out, o0, a, a0):  # noqa: ANN001, ANN202
    """Write the groups of a slot as rows of features: out[s, f] = a[f, s]."""
    signature = void(width, span, out, o0, a, a0)

    def code(context, builder, signature, args):  # noqa: ANN001, ANN202
        emit = Emitter(context, builder, signature, args)
        d, s = signature.args[0].count, signature.args[1].count
        side = padded(d, s)
        for q in range(side // s):
            for column in range(side // s):
                rows = [
                    emit.load(4, emit.offset(args[5], (q * side + f, s)), s)
                    if f < d
                    else emit.zero(s)
                    for f in range(column * s, (column + 1) * s)
                ]
                for sample, row in enumerate(_transposed(emit, rows)):
                    if q * s + sample < d:
                        place = (q * s + sample) * side + column * s
                        emit.store(row, 2, emit.offset(args[3], (1, place)))
        return context.get_dummy_value()

    return signature, code


def _transposed(emit, rows):  # noqa: ANN001, ANN202
    """Swap halves, quarters, … between pairs of rows: log2 stages of shuffles."""
    count = len(rows)
    stride = count // 2
    while stride:
        swapped = list(rows)
        for i in range(count):
            if not i & stride:
                a, b = rows[i], rows[i + stride]
                low = [
                    j if not j & stride else count + j - stride for j in range(count)
                ]
                high = [
                    j + stride if not j & stride else count + j for j in range(count)
                ]
                swapped[i], swapped[i + stride] = (
                    emit.pick(a, b, low),
                    emit.pick(a, b, high),
                )
        rows, stride = swapped, stride // 2
    return rows


@intrinsic
def _update(_, width, span, w, w0, v, v0, g, g0, turned, t0, rate, keep, decay):  # noqa: ANN001, ANN202
    """Move a layer's weights and velocity by the gradient g · turned."""
    signature = void(width, span, w, w0, v, v0, g, g0, turned, t0, rate, keep, decay)

    def code(context, builder, signature, args):  # noqa: ANN001, ANN202
        emit = Emitter(context, builder, signature, args)
        d, s = signature.args[0].count, signature.args[1].count
        side = padded(d, s)
        rate, keep, decay = (emit.splat(emit.narrow(n), s) for n in args[10:])

        def block(first, rows, column):  # noqa: ANN001, ANN202
            start = emit.offset(args[7], (first, s))

            def factor(r, k):  # noqa: ANN001, ANN202
                group = builder.udiv(k, emit.index(s))
                lane = builder.urem(k, emit.index(s))
                at = emit.offset(start, (r, s), (group, side * s), (lane, 1))
                return emit.spread(6, at, s)

            def row(k):  # noqa: ANN001, ANN202
                return emit.load(8, emit.offset(args[9], (k, side), (column, s)), s)

            sums = block_sums(emit, rows, d, s, factor, row)
            for r, gradient in enumerate(sums):
                place = emit.offset(0, (first, side), (r, side), (column, s))
                at_w, at_v = (
                    emit.offset(args[3], (1, place)),
                    emit.offset(args[5], (1, place)),
                )
                weight = emit.load(2, at_w, s)
                pull = emit.fused(decay, weight, gradient)
                speed = emit.fused(keep, emit.load(4, at_v, s), pull)
                emit.store(speed, 4, at_v)
                emit.store(
                    builder.fsub(
                        weight,
                        builder.fmul(rate, speed, flags=("contract",)),
                        flags=("contract",),
                    ),
                    2,
                    at_w,
                )

        for column in range(side // s):
            row_blocks(emit, d, s, lambda first, rows, c=column: block(first, rows, c))
        return context.get_dummy_value()

    return signature, code


@njit(cache=True, nogil=True, error_model="numpy")
def _load(shape: Shape, plain: np.ndarray, start: int, wide: np.ndarray) -> None:
    """Copy a point's matrices into padded rows."""
    d, side = len(shape.width), _side(shape)
    for row in range(wide.size // side):
        for k in range(d):
            wide[row * side + k] = plain[start + row * d + k]


@njit(cache=True, nogil=True, error_model="numpy")
def _unload(shape: Shape, wide: np.ndarray, plain: np.ndarray, start: int) -> None:
    """Copy matrices in padded rows back to a point."""
    d, side = len(shape.width), _side(shape)
    for row in range(wide.size // side):
        for k in range(d):
            plain[start + row * d + k] = wide[row * side + k]


@njit(cache=True, nogil=True, error_model="numpy")
def _side(shape: Shape) -> int:
    d, s = len(shape.width), len(shape.span)
    return (d + s - 1) // s * s


@njit(cache=True, nogil=True, error_model="numpy")
def _forward(shape: Shape, buffers: Buffers) -> float:
    """Fill the slots of h; leave the residual in the last and return its squares."""
    width, span, n, skip, _ = shape
    w, h = buffers.w, buffers.h
    d, s, side = len(width), len(span), _side(shape)
    group, slot = side * s, side * side
    depth = h.size // slot - 1
    for layer in range(depth):
        w0 = layer * d * side
        for q in range(side // s):
            b = layer * slot + q * group
            if skip and layer % n == n - 1:
                c = b - (n - 1) * slot
                padded_forward_skip(width, span, h, b + slot, w, w0, h, b, h, c)
            else:
                padded_forward(width, span, h, b + slot, w, w0, h, b, h, b)
    total = 0.0
    for q in range(side // s):
        at = q * group
        total += residual(width, span, h, depth * slot + at, buffers.target, at)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _backward(
    shape: Shape, buffers: Buffers, rate: float, keep: float, decay: float
) -> None:
    """Propagate the residual back; update each layer after it was passed."""
    width, span, n, skip, _ = shape
    w, h, g = buffers.w, buffers.h, buffers.g
    d, s, side = len(width), len(span), _side(shape)
    group, slot = side * s, side * side
    depth = h.size // slot - 1
    for i in range(slot):
        g[i] = h[depth * slot + i]
    unit, inner = 0, 0  # slots of g: the unit's gradient in 0 or 1, inner in 2 or 3
    for layer in range(depth - 1, -1, -1):
        w0, first = layer * d * side, layer % n == 0
        to = 1 - unit if first else 2 + (inner == 2)
        for q in range(side // s if layer else 0):
            o, b = to * slot + q * group, inner * slot + q * group
            if first and skip:
                c = unit * slot + q * group
                padded_backward_skip(width, span, g, o, w, w0, g, b, g, c)
            else:
                padded_backward(width, span, g, o, w, w0, g, b, g, b)
        _turn(width, span, buffers.turned, 0, h, layer * slot)
        at, pull = inner * slot, buffers.turned
        _update(width, span, w, w0, buffers.v, w0, g, at, pull, 0, rate, keep, decay)
        inner = to
        if first:
            unit = to


@njit(cache=True, nogil=True, error_model="numpy")
def advance_moments(
    shape: Shape,
    buffers: Buffers,
    least: float,
    weights: np.ndarray,
    velocity: np.ndarray,
    rule: Rule,
    log: Advance,
) -> None:
    """Move every point by its rates, or until it stops."""
    points, steps = rule.rates.shape
    size = weights.size // points
    for point in range(points):
        _load(shape, weights, point * size, buffers.w)
        _load(shape, velocity, point * size, buffers.v)
        for step in range(steps):
            loss = least + 0.5 * _forward(shape, buffers)
            if loss <= rule.floor[point] or not loss <= rule.ceiling[point]:
                log.stopped[point] = loss
                break
            log.losses[point, step] = loss
            log.taken[point] = step + 1
            rate, keep = rule.rates[point, step], rule.momentum[point]
            _backward(shape, buffers, rate, keep, rule.weight_decay[point])
        _unload(shape, buffers.w, weights, point * size)
        _unload(shape, buffers.v, velocity, point * size)
