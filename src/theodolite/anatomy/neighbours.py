"""Neighbours of a call: the layer with weights before it, the gate after it."""

import math

from .recording import Call, Recording
from .result import Anatomy

# Calls between a layer and its activation: norms, shifts and changes of shape.
_MOST_CALLS = 8
_LAYERS = frozenset("convolution mm addmm bmm linear".split())
# Kinds of products, as anatomy names them, in which one signal may gate the other.
_PRODUCTS = frozenset(("gate", "squeeze-excite", "attention"))
# Last functions of gates, with values between 0 and 1.
_BOUNDED = frozenset("sigmoid hardsigmoid _softmax softmax _safe_softmax".split())
_ACTIVATIONS = frozenset(
    "relu relu6 hardtanh leaky_relu gelu silu mish hardswish tanh elu softplus".split()
)


def layer_before(recording: Recording, call: Call, fed: set[int]) -> str:
    """Return the name of the layer that feeds a call, or an empty string.

    Args:
        recording: A recorded pass.
        call: One of its calls, such as an activation's.
        fed: Numbers of the values that depend on the network's inputs.
    """
    for _ in range(_MOST_CALLS):
        made = _maker(recording, call, fed)
        if made is None:
            return ""
        call = made
        if call.name in _LAYERS:
            return call.module
    return ""


def inside_gates(anatomy: Anatomy, fed: set[int]) -> set[int]:
    """Return the values that reach the outputs only as a factor of another signal.

    In a product of two signals, the gate is the output of a sigmoid, hard sigmoid or
    softmax, as in squeeze-and-excitation; else the factor with fewer entries; else the
    output of an activation if the other comes from a layer, as in ReGLU.

    Args:
        anatomy: Parts of the network, from a recorded pass.
        fed: Numbers of the values that depend on the network's inputs.
    """
    recording = anatomy.recording
    gates = {
        (other.call, number)
        for other in anatomy.others
        if other.kind in _PRODUCTS
        for number in _gates(recording, recording.calls[other.call], fed)
    }
    return _reaching(recording, set()) - _reaching(recording, gates)


def _gates(recording: Recording, call: Call, fed: set[int]) -> list[int]:
    """Return which of two factors gates the other, None if that is unclear."""
    factors = [n for n in dict.fromkeys(call.inputs) if n in fed]
    if len(factors) != 2:
        return []
    sizes = [math.prod(recording.values[n].shape) for n in factors]
    made = [_made_by(recording, n, fed) for n in factors]
    whole = math.prod(recording.values[call.outputs[0]].shape)
    behind = [m in _ACTIVATIONS and made[1 - i] in _LAYERS for i, m in enumerate(made)]
    for chosen in (
        [_is_bounded(recording, n, fed) for n in factors],
        [size < whole for size in sizes],
        behind,
    ):
        if sum(chosen) == 1:
            return [factors[chosen.index(True)]]
    return []


def _is_bounded(recording: Recording, number: int, fed: set[int]) -> bool:
    """Return whether a value is a sigmoid or softmax, or a product of such."""
    made = recording.values[number].call
    if made is None:
        return False
    call = recording.calls[made]
    data = [n for n in dict.fromkeys(call.inputs) if n in fed]
    if call.name in _BOUNDED:
        return True
    if len(data) == 1 and call.name not in _LAYERS | _ACTIVATIONS:
        return _is_bounded(recording, data[0], fed)
    return call.name == "mul" and all(_is_bounded(recording, n, fed) for n in data)


def _made_by(recording: Recording, number: int, fed: set[int]) -> str:
    """Return the activation or layer that made a value; reshapes are skipped."""
    made = recording.values[number].call
    call = None if made is None else recording.calls[made]
    for _ in range(_MOST_CALLS):
        if call is None or call.name in _LAYERS | _ACTIVATIONS:
            return "" if call is None else call.name
        call = _maker(recording, call, fed)
    return ""


def _maker(recording: Recording, call: Call, fed: set[int]) -> Call | None:
    """Return the call that computed the first signal input of a call."""
    data = [n for n in call.inputs if n in fed]
    made = recording.values[data[0]].call if data else None
    return None if made is None else recording.calls[made]


def _reaching(recording: Recording, without: set[tuple[int, int]]) -> set[int]:
    """Return the values that the outputs depend on.

    Args:
        recording: A recorded pass.
        without: Pairs of a call and an input; that input of the call is ignored.
    """
    reaching: set[int] = set()
    work = list(recording.outputs)
    while work:
        value = recording.values[work.pop()]
        if value.number in reaching:
            continue
        reaching.add(value.number)
        work += value.of
        if value.call is not None:
            inputs = recording.calls[value.call].inputs
            work += [n for n in inputs if (value.call, n) not in without]
    return reaching
