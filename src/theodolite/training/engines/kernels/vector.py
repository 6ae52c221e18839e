r"""Layers of a small network on a group of samples, forward and backward.

A group is a flat stretch of ``width`` rows of ``span`` samples. All arrays are flat and
all places in them are given by offsets: views would cost more than the products.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, codegen, config, types


def _features() -> set[str]:
    """Return the CPU features that numba compiles for, by default those of this CPU."""
    chosen = getattr(config, "CPU_FEATURES", None)
    known = codegen.get_host_cpu_features() if chosen is None else chosen
    return {name[1:] for name in known.split(",") if name.startswith("+")}


_WIDE = "avx512f" in _features()
# Bytes of a vector register, and how many sums are kept in such registers at once.
REGISTER = 64 if _WIDE else 32 if "avx2" in _features() else 16
SUMS = 24 if _WIDE else 12
_UNROLL = 16  # rows up to which loops are written out
_FUSE = ("contract",)  # fused multiply-add; NaN and infinity stay what they are
_I64 = ir.IntType(64)

Value = Any
# Callers leave out the typing context, which checkers of types do not know.
intrinsic: Any = extending.intrinsic


def lane_count(itemsize: int) -> int:
    """Return how many numbers a register holds."""
    return REGISTER // itemsize


class Emitter:
    """Writes vector code over flat arrays of one float type."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.builder = builder
        self.arrays = {}
        self.given = list(args)
        for place, (kind, value) in enumerate(zip(signature.args, args, strict=True)):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                self.arrays[place] = array.data
                self.scalar = context.get_value_type(kind.dtype)
                self.itemsize = 4 if kind.dtype == types.float32 else 8

    def index(self, number: Value) -> Value:
        """Return a whole number as an instruction's operand."""
        return ir.Constant(_I64, number) if isinstance(number, int) else number

    def offset(self, base: Value, *terms: tuple[Value, Value]) -> Value:
        """Return ``base`` plus the products of the pairs."""
        total = self.index(base)
        for number, stride in terms:
            step = self.builder.mul(self.index(number), self.index(stride))
            total = self.builder.add(total, step)
        return total

    def load(self, array: int, at: Value, span: int) -> Value:
        """Read ``span`` numbers as a vector."""
        return self.builder.load(self._pointer(array, at, span), align=self.itemsize)

    def store(self, value: Value, array: int, at: Value) -> None:
        """Write a vector."""
        pointer = self._pointer(array, at, value.type.count)
        self.builder.store(value, pointer, align=self.itemsize)

    def spread(self, array: int, at: Value, span: int) -> Value:
        """Load one number into all lanes of a vector."""
        pointer = self.builder.gep(self.arrays[array], [at])
        return self.splat(self.builder.load(pointer), span)

    def splat(self, number: Value, span: int) -> Value:
        """Copy one number into all lanes of a vector."""
        kind = ir.VectorType(number.type, span)
        one = self.builder.insert_element(
            ir.Constant(kind, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
        )
        none = ir.Constant(ir.VectorType(ir.IntType(32), span), [0] * span)
        return self.builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), none)

    def zero(self, span: int) -> Value:
        """Return a vector of zeros."""
        return ir.Constant(self.vector(span), [0.0] * span)

    def vector(self, span: int) -> Any:
        """Return the type of a vector."""
        return ir.VectorType(self.scalar, span)

    def fused(self, a: Value, b: Value, total: Value) -> Value:
        """Return ``a * b + total``."""
        product = self.builder.fmul(a, b, flags=_FUSE)
        return self.builder.fadd(product, total, flags=_FUSE)

    def times(self, count: int, body: Callable[[Value], None]) -> None:
        """Run the body for every index, unrolled if there are few."""
        if count <= _UNROLL:
            for k in range(count):
                body(self.index(k))
        else:
            with cgutils.for_range(self.builder, self.index(count)) as loop:
                body(loop.index)

    def points(self, count: int, span: int, kind: Any = None) -> list[Value]:
        """Return zeroed variables that the compiler keeps in registers."""
        vector = ir.VectorType(kind or self.scalar, span)
        made = [cgutils.alloca_once(self.builder, vector) for _ in range(count)]
        for place in made:
            self.builder.store(ir.Constant(vector, [0.0] * span), place)
        return made

    def narrow(self, number: Value) -> Value:
        """Return a float64 number in the type of the arrays."""
        same = number.type == self.scalar
        return number if same else self.builder.fptrunc(number, self.scalar)

    def pick(self, a: Value, b: Value, places: list[int]) -> Value:
        """Return the entries at these places of ``a`` followed by ``b``."""
        kind = ir.VectorType(ir.IntType(32), len(places))
        return self.builder.shuffle_vector(a, b, ir.Constant(kind, places))

    def sum(self, vector: Value) -> Value:
        """Return the sum of a vector's entries, added in halves."""
        while vector.type.count > 1:
            half = vector.type.count // 2
            low = self.pick(vector, vector, list(range(half)))
            high = self.pick(vector, vector, list(range(half, 2 * half)))
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    def _pointer(self, array: int, at: Value, span: int) -> Value:
        pointer = self.builder.gep(self.arrays[array], [self.index(at)])
        return self.builder.bitcast(pointer, ir.PointerType(self.vector(span)))


def row_blocks(emit: Emitter, width: int, span: int, body: Callable) -> None:
    """Call ``body(first row, rows)`` for blocks of rows whose sums fit registers."""
    wide = -(-span * emit.itemsize // REGISTER)
    most = max(1, SUMS // wide)
    rows = -(-width // -(-width // most))
    full, rest = divmod(width, rows)
    emit.times(full, lambda block: body(emit.offset(0, (block, rows)), rows))
    if rest:
        body(emit.index(full * rows), rest)


def block_sums(
    emit: Emitter,
    rows: int,
    steps: int,
    span: int,
    factor: Callable[[int, Value], Value],
    row: Callable[[Value], Value],
) -> list[Value]:
    """Return the sums over k of ``factor(r, k)`` times vector ``row(k)``."""
    sums = emit.points(rows, span)

    def add(k: Value) -> None:
        vector = row(k)
        for r in range(rows):
            total = emit.builder.load(sums[r])
            emit.builder.store(emit.fused(factor(r, k), vector, total), sums[r])

    emit.times(steps, add)
    return [emit.builder.load(place) for place in sums]


def void(*kinds: Any) -> Any:
    """Return the signature of an instruction that returns nothing."""
    return types.void(*kinds)


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
