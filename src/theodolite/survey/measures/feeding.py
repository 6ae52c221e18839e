"""The layer of weights whose outputs a call reads."""

from theodolite.anatomy import Call, Recording

# Calls between a layer and its activation: norms, shifts and changes of shape.
_MOST_CALLS = 8
_LAYERS = frozenset("convolution mm addmm bmm linear".split())


def layer_before(recording: Recording, call: Call, fed: set[int]) -> str:
    """Return the module of the layer that feeds a call, or nothing.

    Args:
        recording: A recorded pass.
        call: One of its calls, such as an activation's.
        fed: Numbers of the values that depend on the network's inputs.
    """
    for _ in range(_MOST_CALLS):
        data = [n for n in call.inputs if n in fed]
        made = recording.values[data[0]].call if data else None
        if made is None:
            return ""
        call = recording.calls[made]
        if call.name in _LAYERS:
            return call.module
    return ""
