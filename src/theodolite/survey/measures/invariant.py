"""Weights whose scale a norm behind them takes away."""

from theodolite.anatomy import Call, Recording

from .charting import RESHAPING, fed_by_inputs, weights_behind
from .site import Site

# Calls that hand on what they are given, up to its shape and a shift.
_HANDED_ON = RESHAPING | {"add"}
_LAYERS = frozenset("convolution mm addmm bmm linear".split())
# A scale-invariant loss has no slope along the weights; the norm's ε leaves a little.
_SLOPE = 0.05


def invariant_weights(site: Site) -> set[str]:
    r"""Return the names of weights that a norm follows, and no slope runs along.

    A norm makes the loss invariant to the scale of the weights before it, hence
    $\langle \nabla_w \ell, w\rangle = 0$; both are required. A norm layer in eval
    mode takes no scale away.
    """
    still = site.norm_layers.get("eval", ())
    recording = site.chart.anatomy.recording
    fed = fed_by_inputs(recording)
    parameters = dict(site.model.named_parameters())
    names: set[str] = set()
    for norm in site.chart.anatomy.norms:
        if norm.module in still:
            continue
        call = recording.calls[norm.call]
        for name in _weights_before(recording, call, fed):
            if name in parameters and _is_flat(site, name):
                names.add(name)
    return names


def _weights_before(recording: Recording, call: Call, fed: set[int]) -> set[str]:
    """Return the matrices of the layer that feeds a call, and feeds nothing else."""
    for _ in range(8):
        data = [n for n in call.inputs if n in fed]
        if not data:
            return set()
        value = recording.values[data[0]]
        if value.call is None or _readers(recording, data[0]) > 1:
            return set()
        call = recording.calls[value.call]
        if call.name in _LAYERS:
            return {
                name
                for n in call.inputs
                if n not in fed and len(recording.values[n].shape) >= 2
                for name in weights_behind(recording, n)
            }
        if call.name not in _HANDED_ON:
            return set()
        if call.name == "add" and len([n for n in call.inputs if n in fed]) > 1:
            return set()
    return set()


def _is_flat(site: Site, name: str) -> bool:
    weight = dict(site.model.named_parameters())[name].detach().double()
    gradient = site.sounding.gradients.get(name)
    if gradient is None:
        return False
    slope = float((weight * gradient.double()).sum().abs())
    size = float(weight.norm() * gradient.double().norm())
    return slope <= _SLOPE * size


def _readers(recording: Recording, number: int) -> int:
    """Count the calls that a value enters; a skip is one."""
    return sum(number in call.inputs for call in recording.calls)
