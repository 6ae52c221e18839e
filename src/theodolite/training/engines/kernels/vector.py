r"""Products of small matrices with vectors of samples, as LLVM instructions.

Loops over matrices of width 10 leave a compiler little to vectorise and much to check.
Here the instructions are written out: a *group* holds ``width`` rows of ``span``
samples each, a row is one vector, and the sums of a block of rows stay in registers.

The width is known when compiling: it is the length of a tuple, so that the compiled
code of every width is cached on disk by its signature.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, codegen, config, types


def _features() -> set[str]:
    """Return what the processor can that numba compiles for: this one by default."""
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


def lanes(itemsize: int) -> int:
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
        """Read one number into all places of a vector."""
        pointer = self.builder.gep(self.arrays[array], [at])
        return self.splat(self.builder.load(pointer), span)

    def splat(self, number: Value, span: int) -> Value:
        """Put one number into all places of a vector."""
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
        """Run the body for every index: written out when few, else as a loop."""
        if count <= _UNROLL:
            for k in range(count):
                body(self.index(k))
        else:
            with cgutils.for_range(self.builder, self.index(count)) as loop:
                body(loop.index)

    def points(self, count: int, span: int, kind: Any = None) -> list[Value]:
        """Return variables, at zero, that end up in registers."""
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


__all__ = [
    "REGISTER",
    "SUMS",
    "Emitter",
    "block_sums",
    "cgutils",
    "intrinsic",
    "ir",
    "lanes",
    "row_blocks",
    "types",
    "void",
]
