"""The effect of a call on the signal, given which arguments carry the signal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .operators import (
    CURVED,
    FUSED_ADDS,
    LINEARS,
    MAX_POOLS,
    PIECEWISE_LINEAR,
    SOFTMAXES,
    operator_kind,
)
from .recording import Call, Ref

_MIXING = (
    SOFTMAXES
    | MAX_POOLS
    | frozenset(
        "_log_softmax log_softmax amax amin aminmax sort topk kthvalue median "
        "nanmedian cummax cummin argmax argmin argsort any all nonzero "
        "searchsorted".split()
    )
)
_POINTWISE = frozenset("view scale shift addition product activation step".split())


@dataclass(frozen=True, kw_only=True)
class Term:
    """One operand of a sum or product: an argument, or a fused product of two."""

    values: tuple[int, ...]  # the signals in it
    call: int  # index of the call
    position: int  # index among the call's arguments
    sign: float = 1.0  # factor that the call applies, such as −1 where it subtracts
    # What the call does to it before adding: ``"linear"``, ``"product"``, ….
    fused: str = ""


@dataclass(frozen=True, kw_only=True)
class Step:
    """The effect of one call on the signal."""

    call: int  # index of the call
    kind: str  # what it does, such as ``"linear"`` or ``"addition"``
    name: str  # the operator's name
    reads: tuple[int, ...]  # signals that it reads
    terms: tuple[Term, ...] = ()  # signals that it adds or multiplies with one another
    weighted: bool = False  # whether it uses parameters
    # Whether each number of the result depends only on the same position.
    pointwise: bool = False
    curved: bool = False  # whether it is nonlinear and not piecewise linear


def step_of(
    call: Call,
    signal: Callable[[int], bool],
    weighted: Callable[[int], bool],
    size: Callable[[int], int],
) -> Step | None:
    """Return the effect of a call on the signal, None if it reads no signal.

    ``signal``, ``weighted`` and ``size`` say of a value, by its number, whether it
    carries the signal, whether it was computed from parameters, and how many numbers it
    holds.
    """
    kind = operator_kind(call.name)
    reads = _reads(call, kind, signal)
    if kind == "factory" or not reads:
        return None
    kind, terms = _in_context(call, kind, signal)
    if kind == "slice" and size(call.outputs[0]) == size(reads[0]):
        kind = "view"
    outside = [number for number in call.inputs if not signal(number)]
    curved = call.name in CURVED or kind in (
        "product", "attention", "gate", "statistic", "unknown",
    )  # fmt: skip
    return Step(
        call=call.index,
        kind=kind,
        name=call.name,
        reads=tuple(dict.fromkeys(reads)),
        terms=terms,
        weighted=any(weighted(number) for number in outside),
        pointwise=kind in _POINTWISE and _is_pointwise(call),
        curved=curved or (kind == "activation" and call.name not in PIECEWISE_LINEAR),
    )


def _is_pointwise(call: Call) -> bool:
    if call.name in ("max", "min"):
        return call.operator.endswith(".other")
    return call.name not in _MIXING and call.name not in LINEARS


def _reads(call: Call, kind: str, signal: Callable[[int], bool]) -> list[int]:
    if kind == "norm":  # running statistics are no part of the signal
        return [n for n in call.inputs[:1] if signal(n)]
    given = call.inputs[1:] if call.name == "copy" else call.inputs
    return [number for number in given if signal(number)]


def _in_context(
    call: Call, kind: str, signal: Callable[[int], bool]
) -> tuple[str, tuple[Term, ...]]:
    """Return the kind of a call and its terms, given which arguments are signals."""
    if call.name in FUSED_ADDS:
        return _fused(call, signal)
    if kind == "linear":
        joined = _terms(call, signal, (0, 1))
        return ("product", joined) if len(joined) > 1 else ("linear", ())
    if kind == "add":
        joined = _terms(call, signal, (0, 1))
        alone = "view" if 0 in call.arguments[1:2] else "shift"  # as sum([…]) starts
        return ("addition", joined) if len(joined) > 1 else (alone, ())
    if kind == "multiply":
        joined = _terms(call, signal, (0, 1))
        if len(joined) == 1 and joined[0].position == 1 and call.name.startswith("d"):
            return "activation", ()  # a reciprocal
        return ("product", joined) if len(joined) > 1 else ("scale", ())
    if kind == "concatenation":
        several = len({n for n in call.inputs if signal(n)}) > 1
        return ("concatenation" if several else "pad"), ()
    if call.name in ("where", "masked_fill"):
        return _masked(call, signal), ()
    return kind, ()


def _terms(
    call: Call, signal: Callable[[int], bool], places: Sequence[int]
) -> tuple[Term, ...]:
    """Return the arguments at some places that are signals, as terms."""
    pairs = [(place, call.arguments[place : place + 1]) for place in places]
    return tuple(
        Term(
            values=(given[0].number,),
            call=call.index,
            position=place,
            sign=_sign(call, place),
        )
        for place, given in pairs
        if given and isinstance(given[0], Ref) and signal(given[0].number)
    )


def _sign(call: Call, place: int) -> float:
    alpha: Any = dict(call.options).get("alpha", 1)
    alpha = float(alpha) if isinstance(alpha, int | float) else 1.0
    if call.name in ("sub", "subtract"):
        return -alpha if place == 1 else 1.0
    if call.name == "rsub":
        return -alpha if place == 0 else 1.0
    return alpha if call.name == "add" and place == 1 else 1.0


def _fused(call: Call, signal: Callable[[int], bool]) -> tuple[str, tuple[Term, ...]]:
    """Return kind and terms of ``addmm(a, b, c)`` and similar, which add a product."""
    first, second = _terms(call, signal, (0,)), _terms(call, signal, (1, 2))
    inner = "linear" if call.name in LINEARS else "scale"
    inner = "product" if len(second) > 1 else inner
    if not first or not second:
        return ("shift" if first else inner), (second if inner == "product" else ())
    options = dict(call.options)
    scale = options.get("alpha", options.get("value", 1))
    joined = Term(
        values=tuple(value for term in second for value in term.values),
        call=call.index,
        position=second[0].position,
        sign=float(scale) if isinstance(scale, int | float) else 1.0,
        fused=inner,
    )
    return "addition", (*first, joined)


def _masked(call: Call, signal: Callable[[int], bool]) -> str:
    """Return the kind of a where or masked_fill, by what its mask depends on."""
    place = 0 if call.name == "where" else 1
    chooser = call.arguments[place] if place < len(call.arguments) else None
    if isinstance(chooser, Ref) and signal(chooser.number):
        return "activation"
    others = [
        given
        for at, given in enumerate(call.arguments)
        if at != place and isinstance(given, Ref) and signal(given.number)
    ]
    return "scale" if len(others) < 2 else "concatenation"
