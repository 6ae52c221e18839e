"""Find the parameters that act on a branch, from a recording."""

from collections.abc import Iterable, Iterator

from theodolite.anatomy import Call, Recording, Ref, Span
from theodolite.core import SurgeryError

from .attaching import describe

_VIEWS = frozenset(
    "t transpose permute view reshape _unsafe_view expand unsqueeze squeeze _to_copy "
    "detach alias clone numpy_T select slice".split()
)
_SHIFTS = frozenset("add sub rsub".split())
_FUSED = frozenset("addmm baddbmm addbmm addmv addr addcmul addcdiv".split())
_LINEAR = frozenset(
    "convolution _convolution mkldnn_convolution cudnn_convolution addmm mm bmm matmul "
    "linear baddbmm addmv mv".split()
)


def is_fused(call: Call, span: Span) -> bool:
    """Return whether the call that adds a span multiplies it first."""
    return call.name in _FUSED and span.position > 0


def parameters_of(recording: Recording, numbers: Iterable[int]) -> dict[str, int]:
    """Return the parameters, and their numbers, that values are views of."""
    parameters: dict[str, int] = {}
    work = list(numbers)
    while work:
        value = recording.values[work.pop()]
        if value.source == "parameter":
            parameters[value.name] = value.number
        elif value.source == "alias":
            work += value.of
        elif value.call is not None and recording.calls[value.call].name in _VIEWS:
            work += recording.calls[value.call].inputs[:1]
    return parameters


def final_layers(recording: Recording, span: Span) -> Iterator[list[str]]:
    """Yield parameters that may make a branch zero if they are, last layer first.

    Each item holds all parameters of one layer, norm or factor, and of later shifts.
    Parameters that also act in other parts of the network raise an error.
    """
    calls = branch_calls(recording, span)
    shifts: dict[str, int] = {}
    for call in reversed(calls):
        own = _outside(recording, call, span)
        if own and call.name in _SHIFTS:
            shifts |= own
        elif own:
            role = f"ends the branch in {adding_module(recording, span)}"
            _refuse_shared(recording, own | shifts, {c.index for c in calls}, role)
            yield list(own | shifts)


def branch_calls(recording: Recording, span: Span) -> list[Call]:
    """List the calls of a branch, and the call that adds it if it also multiplies."""
    calls = [recording.calls[index] for index in span.calls]
    if is_fused(recording.calls[span.into], span):
        calls.append(recording.calls[span.into])
    return calls


def linear_weights(recording: Recording, span: Span) -> list[str]:
    """List the weights of the linear layers of a branch, in order."""
    weights: dict[str, None] = {}
    for call in branch_calls(recording, span):
        if call.name in _LINEAR:
            for name, number in parameters_of(recording, call.inputs).items():
                if len(recording.values[number].shape) > 1:
                    weights[name] = None
    return list(weights)


def last_weights(recording: Recording, *, behind: int) -> list[str]:
    """Return the parameters of the last linear layer behind a call, if there is one.

    Parameters that also act elsewhere, such as tied embeddings, raise an error.
    """
    for call in reversed(recording.calls[behind + 1 :]):
        own = parameters_of(recording, call.inputs) if call.name in _LINEAR else {}
        if own:
            _refuse_shared(recording, own, {call.index}, "is in the head")
            return list(own)
    return []


def _outside(recording: Recording, call: Call, span: Span) -> dict[str, int]:
    """Return the parameters of a call, not those that a fused sum adds to."""
    numbers = call.inputs
    if call.index == span.into:
        kept = [a.number for a in call.arguments[1:] if isinstance(a, Ref)]
        numbers = tuple(n for n in numbers if n in kept)
    return parameters_of(recording, numbers)


def _refuse_shared(
    recording: Recording, names: dict[str, int], own: set[int], role: str
) -> None:
    """Raise if parameters also act elsewhere."""
    for call in recording.calls:
        if call.index in own or call.name in _VIEWS:
            continue
        shared = set(names) & set(parameters_of(recording, call.inputs))
        if shared:
            raise SurgeryError(
                f"parameter {sorted(shared)[0]!r} {role} and acts elsewhere too, "
                "wanted is one that does not: give each place its own, or pass "
                "how='scale' or head=False"
            )


def adding_module(recording: Recording, span: Span) -> str:
    """Name the module that adds a span."""
    return describe(recording.calls[span.into].module)
