"""Settings of the given optimiser, parameters left out, and decay without effect."""

from collections.abc import Iterator
from typing import Any, ClassVar

from theodolite.anatomy import Call, Recording
from theodolite.core import NormMode

from .block_map import RESHAPING, fed_by_inputs, weights_behind
from .context import SurveyContext
from .contract import Found, Measure, number

# Operators that return their input, possibly reshaped or shifted.
_HANDED_ON = RESHAPING | {"add"}
_LAYERS = frozenset("convolution mm addmm bmm linear".split())
# A scale-invariant loss has no slope along the weights, except for the norm's ε.
_SLOPE = 0.05


class OptimizerMeasure(Measure):
    """Weight decay and momentum in use, parameters left out, decay without effect.

    ``decay_on_invariant_share`` is the share of decayed weights whose scale has no
    effect because a norm follows them: there decay only raises the effective learning
    rate.
    """

    name: ClassVar = "optimizer"

    def refusal(self, context: SurveyContext) -> str:
        """Refuse if no optimiser was given."""
        if context.optimizer is None:
            return "no optimiser was given: pass optimizer=… to have it looked at"
        return ""

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield the settings in use, parameters left out, and decay in vain."""
        assert context.optimizer is not None
        groups = context.optimizer.param_groups
        yield number("weight_decay", _largest(groups, "weight_decay"), 0.0)
        yield number("momentum", momentum_of(groups), 0.0)
        held = {id(p) for group in groups for p in group["params"]}
        for name, parameter in context.model.named_parameters():
            if parameter.requires_grad and id(parameter) not in held:
                owner = name.rpartition(".")[0]
                yield number("left_out", parameter.numel(), 0.0, module=owner)
        yield from _decay(context, groups)


def _largest(groups: list[dict[str, Any]], key: str) -> float:
    return max((float(group.get(key) or 0.0) for group in groups), default=0.0)


def momentum_of(groups: list[dict[str, Any]]) -> float:
    """Return the momentum of an optimiser; for Adam and variants, the first beta."""
    betas = [group["betas"][0] for group in groups if group.get("betas")]
    return float(max(betas)) if betas else _largest(groups, "momentum")


def _decay(context: SurveyContext, groups: list[dict[str, Any]]) -> Iterator[Found]:
    names = {id(p): name for name, p in context.model.named_parameters()}
    decayed = [
        p for group in groups if group.get("weight_decay") for p in group["params"]
    ]
    total = sum(p.numel() for p in decayed)
    if not total:
        return
    invariant: set[str] = set()
    if context.norm_mode is not NormMode.EVAL:
        invariant = _invariant_weights(context)
    on = [p for p in decayed if names.get(id(p)) in invariant]
    share = sum(p.numel() for p in on) / total
    yield number("decay_on_invariant_share", share, 0.0)
    for name in (names[id(p)] for p in on):
        labels = {"module": name.rpartition(".")[0], "parameter": name}
        yield number("decays_invariant", 1.0, 0.0, **labels)


def _invariant_weights(context: SurveyContext) -> set[str]:
    r"""Return the names of weights before a norm along which the loss has no slope.

    A norm makes the loss invariant to the scale of the weights before it, hence
    $\langle \nabla_w \ell, w\rangle = 0$; both are required. A norm layer in eval
    mode does not remove the scale.
    """
    still = context.norm_layers.get("eval", ())
    recording = context.block_map.anatomy.recording
    fed = fed_by_inputs(recording)
    parameters = dict(context.model.named_parameters())
    names: set[str] = set()
    for norm in context.block_map.anatomy.norms:
        if norm.module in still:
            continue
        call = recording.calls[norm.call]
        for name in _weights_before(recording, call, fed):
            if name in parameters and _is_flat(context, name):
                names.add(name)
    return names


def _weights_before(recording: Recording, call: Call, fed: set[int]) -> set[str]:
    """Return the weight matrices of the layer that feeds this call and no other."""
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


def _is_flat(context: SurveyContext, name: str) -> bool:
    weight = dict(context.model.named_parameters())[name].detach().double()
    gradient = context.first_pass.gradients.get(name)
    if gradient is None:
        return False
    slope = float((weight * gradient.double()).sum().abs())
    size = float(weight.norm() * gradient.double().norm())
    return slope <= _SLOPE * size


def _readers(recording: Recording, number: int) -> int:
    """Count the calls that read a value; a skip counts as one."""
    return sum(number in call.inputs for call in recording.calls)
