r"""Layers of a small network on a group of samples, forward and backward.

A group is a flat stretch of ``width`` rows of ``span`` samples. All arrays are flat and
all places in them are given by offsets: views would cost more than the products.
"""

from typing import Any

from theodolite.training.engines.kernels.vector import (
    Emitter,
    block_sums,
    intrinsic,
    ir,
    row_blocks,
    types,
    void,
)


def padded(width: int, span: int) -> int:
    """Return the width rounded up to whole vectors."""
    return span * -(-width // span)


def _layer(*, pad: bool, back: bool, begin: bool, last: str = "") -> Any:
    """Return the instruction out = begin + last(W b), or with W transposed.

    Args:
        pad: Whether rows of W are padded to whole vectors.
        back: Whether W is transposed.
        begin: Whether the sum starts from rows of a third group, a skip.
        last: ``relu``; ``mask``, zero where a third group is not positive; or nothing.
    """

    @intrinsic
    def layer(_, width, span, out, o0, w, w0, b, b0, c, c0):  # noqa: ANN001, ANN202
        signature = void(width, span, out, o0, w, w0, b, b0, c, c0)

        def code(context, builder, signature, args):  # noqa: ANN001, ANN202
            emit = Emitter(context, builder, signature, args)
            d, s = signature.args[0].count, signature.args[1].count
            pitch = padded(d, s) if pad else d
            o0, w0, b0, c0 = args[3], args[5], args[7], args[9]
            by_row, by_step = (1, pitch) if back else (pitch, 1)

            def block(first: Any, rows: int) -> None:
                start = emit.offset(w0, (first, by_row))
                sums = block_sums(
                    emit,
                    rows,
                    d,
                    s,
                    lambda r, k: emit.spread(
                        4, emit.offset(start, (r, by_row), (k, by_step)), s
                    ),
                    lambda k: emit.load(6, emit.offset(b0, (k, s)), s),
                )
                for r, total in enumerate(sums):
                    place = emit.offset(0, (first, s), (r, s))
                    third = emit.offset(c0, (1, place))
                    if begin:
                        total = builder.fadd(total, emit.load(8, third, s))
                    if last == "relu":
                        low = builder.fcmp_ordered("<", total, emit.zero(s))
                        total = builder.select(low, emit.zero(s), total)
                    if last == "mask":
                        shut = emit.load(8, third, s)
                        low = builder.fcmp_ordered("<=", shut, emit.zero(s))
                        total = builder.select(low, emit.zero(s), total)
                    emit.store(total, 2, emit.offset(o0, (1, place)))

            row_blocks(emit, d, s, block)
            return context.get_dummy_value()

        return signature, code

    return layer


# On plain weights, shape (width, width), and on weights in padded rows.
forward = _layer(pad=False, back=False, begin=False)
forward_relu = _layer(pad=False, back=False, begin=False, last="relu")
forward_skip = _layer(pad=False, back=False, begin=True)
backward = _layer(pad=False, back=True, begin=False)
backward_mask = _layer(pad=False, back=True, begin=False, last="mask")
backward_skip = _layer(pad=False, back=True, begin=True)
padded_forward = _layer(pad=True, back=False, begin=False)
padded_forward_skip = _layer(pad=True, back=False, begin=True)
padded_backward = _layer(pad=True, back=True, begin=False)
padded_backward_skip = _layer(pad=True, back=True, begin=True)


@intrinsic
def residual(_, width, span, out, o0, target, t0):  # noqa: ANN001, ANN201
    """Subtract the targets from a group and return the sum of squares as float64."""
    signature = types.float64(width, span, out, o0, target, t0)

    def code(context, builder, signature, args):  # noqa: ANN001, ANN202
        emit = Emitter(context, builder, signature, args)
        d, s = signature.args[0].count, signature.args[1].count
        double = ir.VectorType(ir.DoubleType(), s)
        total = emit.points(1, s, kind=ir.DoubleType())[0]

        def row(k: Any) -> None:
            at = emit.offset(args[3], (k, s))
            target = emit.load(4, emit.offset(args[5], (k, s)), s)
            gap = builder.fsub(emit.load(2, at, s), target)
            emit.store(gap, 2, at)
            if emit.itemsize == 4:
                gap = builder.fpext(gap, double)
            builder.store(emit.fused(gap, gap, builder.load(total)), total)

        emit.times(d, row)
        return emit.sum(builder.load(total))

    return signature, code
