"""What a call does to the signal, given which of its arguments carry the signal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.anatomy.recording import Call, Ref
from theodolite.anatomy.vocabulary import (
    CURVED,
    FUSED_ADDS,
    LINEARS,
    MAX_POOLS,
    PIECEWISE_LINEAR,
    SOFTMAXES,
    word_of,
)

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
    """What a call adds or multiplies: one argument, or the fused product of two.

    Attributes:
        values: The signals in it.
        call: Index of the call.
        position: Place among the call's arguments.
        sign: Factor of the call itself, such as −1 where it is subtracted.
        fused: What the call does to it before it adds: ``"linear"``, ``"product"``, ….
    """

    values: tuple[int, ...]
    call: int
    position: int
    sign: float = 1.0
    fused: str = ""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A call, in a word.

    Attributes:
        call: Index of the call.
        word: What it does to the signal.
        name: The operator's name.
        reads: Signals that it reads.
        terms: What it adds or multiplies, if it joins signals.
        weighted: Whether parameters act in it.
        pointwise: Whether each number of the result comes from the same place.
        curved: Whether it is nonlinear and not piecewise linear.
    """

    call: int
    word: str
    name: str
    reads: tuple[int, ...]
    terms: tuple[Term, ...] = ()
    weighted: bool = False
    pointwise: bool = False
    curved: bool = False


def step_of(
    call: Call,
    signal: Callable[[int], bool],
    weighted: Callable[[int], bool],
    size: Callable[[int], int],
) -> Step | None:
    """Return what a call does, None if it reads no signal.

    Args:
        call: The call.
        signal: Whether a value carries the signal.
        weighted: Whether a value was made from parameters.
        size: How many numbers a value holds.
    """
    word = word_of(call.name)
    reads = _reads(call, word, signal)
    if word == "factory" or not reads:
        return None
    word, terms = _in_context(call, word, signal)
    if word == "slice" and size(call.outputs[0]) == size(reads[0]):
        word = "view"
    outside = [number for number in call.inputs if not signal(number)]
    curved = call.name in CURVED or word in (
        "product", "attention", "gate", "statistic", "unknown",
    )  # fmt: skip
    return Step(
        call=call.index,
        word=word,
        name=call.name,
        reads=tuple(dict.fromkeys(reads)),
        terms=terms,
        weighted=any(weighted(number) for number in outside),
        pointwise=word in _POINTWISE and _is_pointwise(call),
        curved=curved or (word == "activation" and call.name not in PIECEWISE_LINEAR),
    )


def _is_pointwise(call: Call) -> bool:
    if call.name in ("max", "min"):
        return call.operator.endswith(".other")
    return call.name not in _MIXING and call.name not in LINEARS


def _reads(call: Call, word: str, signal: Callable[[int], bool]) -> list[int]:
    if word == "norm":  # running statistics are no part of the signal
        return [n for n in call.inputs[:1] if signal(n)]
    given = call.inputs[1:] if call.name == "copy" else call.inputs
    return [number for number in given if signal(number)]


def _in_context(
    call: Call, word: str, signal: Callable[[int], bool]
) -> tuple[str, tuple[Term, ...]]:
    if call.name in FUSED_ADDS:
        return _fused(call, signal)
    if word == "linear":
        joined = _terms(call, signal, (0, 1))
        return ("product", joined) if len(joined) > 1 else ("linear", ())
    if word == "add":
        joined = _terms(call, signal, (0, 1))
        alone = "view" if 0 in call.arguments[1:2] else "shift"  # as sum([…]) starts
        return ("addition", joined) if len(joined) > 1 else (alone, ())
    if word == "multiply":
        joined = _terms(call, signal, (0, 1))
        if len(joined) == 1 and joined[0].position == 1 and call.name.startswith("d"):
            return "activation", ()  # a reciprocal
        return ("product", joined) if len(joined) > 1 else ("scale", ())
    if word == "concatenation":
        several = len({n for n in call.inputs if signal(n)}) > 1
        return ("concatenation" if several else "pad"), ()
    if call.name in ("where", "masked_fill"):
        return _masked(call, signal), ()
    return word, ()


def _terms(
    call: Call, signal: Callable[[int], bool], places: Sequence[int]
) -> tuple[Term, ...]:
    found = []
    for place in places:
        given = call.arguments[place] if place < len(call.arguments) else None
        if isinstance(given, Ref) and signal(given.number):
            sign = _sign(call, place)
            term = Term(
                values=(given.number,), call=call.index, position=place, sign=sign
            )
            found.append(term)
    return tuple(found)


def _sign(call: Call, place: int) -> float:
    alpha: Any = dict(call.options).get("alpha", 1)
    alpha = float(alpha) if isinstance(alpha, int | float) else 1.0
    if call.name in ("sub", "subtract"):
        return -alpha if place == 1 else 1.0
    if call.name == "rsub":
        return -alpha if place == 0 else 1.0
    return alpha if call.name == "add" and place == 1 else 1.0


def _fused(call: Call, signal: Callable[[int], bool]) -> tuple[str, tuple[Term, ...]]:
    """Read ``addmm(a, b, c)`` and its like, which add a product to their first."""
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
    """Tell a choice by the signal itself from one by a mask from outside."""
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
