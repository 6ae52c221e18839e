"""Wiring: how the parts of a network are connected."""

import math

from torch import Tensor, nn

from .check import Sign, check
from .reach import listed
from .seen import Seen
from .trace import Call

_MATRICES = ("linear", "conv1d", "conv2d", "conv3d", "matmul", "bmm", "addmm", "mm")
# Share of the outputs that a map may bend and count as linear: rounding, our choice.
BENT = 1e-3
# Size of the arguments of a sine in a hidden layer: our choice.
TURNS = 10.0


@check(
    "no-activation",
    "sick",
    "There is no activation between linear layers",
    source="a product of matrices is a matrix: outputs for x, 0 and -3 x compared",
    repaired_by="Put an activation between the layers",
    kind="surgery",
)
def no_activation(seen: Seen) -> Sign | None:
    """Linear layers one after the other compute one linear map, whatever their number,
    so that nothing but a linear function can be learned. That is sound where the
    problem is linear.
    """
    calls = [c for c in seen.trace.calls if not c.after_model]
    layers = [c for c in calls if c.name in _MATRICES]
    names = dict.fromkeys(c.module for c in layers)
    places = {c.index for c in layers}
    given = seen.inputs[0].detach() if len(seen.inputs) == 1 else None
    if given is None or not given.is_floating_point():
        return _adjacent(seen)
    if not any(_above(seen, c) & places for c in layers):
        return None
    last = seen.output_call.name if seen.output_call is not None else ""
    made = list[Tensor]()
    for factor in (1.0, 0.0, -3.0):
        outputs = seen.evaluated(factor * given)
        if outputs is None:
            return _adjacent(seen)
        if last in ("sigmoid", "softmax"):
            outputs = outputs.logit() if last == "sigmoid" else outputs.log()
        if last in ("softmax", "log_softmax"):
            outputs = outputs - outputs.mean(1, keepdim=True)
        made.append(outputs)
    first, zero, far = made
    size = float((first - zero).abs().max())
    bent = float((far - zero + 3 * (first - zero)).abs().max())
    if not 0 < size < math.inf or not bent < BENT * size:
        return _adjacent(seen)
    return Sign(
        0.0,
        1.0,
        above=False,
        where=names,
        severity=None if seen.stuck else "note",
        detail=f"Here none of {listed(names)} is followed by one.",
    )


def _above(seen: Seen, call: Call) -> set[int]:
    """Return the calls that a call depends on."""
    found, waiting = set[int](), [s for s in call.sources if s >= 0]
    while waiting:
        index = waiting.pop()
        if index not in found:
            found.add(index)
            waiting += [s for s in seen.trace.calls[index].sources if s >= 0]
    return found


def _adjacent(seen: Seen) -> Sign | None:
    """Return layers that follow each other in a Sequential without an activation."""
    between = (nn.Dropout, nn.modules.batchnorm._BatchNorm, nn.Identity)
    plain = (nn.Linear, nn.Conv1d, nn.Conv2d)
    found: list[str] = []
    for path, module in seen.model.named_modules():
        if not isinstance(module, nn.Sequential):
            continue
        last: nn.Module | None = None
        for name, child in module.named_children():
            if isinstance(child, plain):
                if last is not None and _merges(last, child):
                    found.append(f"{path}.{name}".lstrip("."))
                last = child
            elif not isinstance(child, between):
                last = None
    if not found:
        return None
    return Sign(
        len(found),
        where=found,
        severity="note",
        detail=f"Here before {listed(found)}.",
    )


def _merges(first: nn.Module, second: nn.Module) -> bool:
    """Return whether two layers could be one of no more weights."""
    if isinstance(first, nn.Linear) and isinstance(second, nn.Linear):
        inner, outer = first.out_features, (first.in_features, second.out_features)
        return inner >= min(outer) and outer[1] > 1 and inner > 2
    if type(first) is type(second) and isinstance(first, nn.Conv1d | nn.Conv2d):
        one = first.kernel_size[0] == 1 or second.kernel_size[0] == 1  # pyright: ignore
        grouped = first.groups > 1 or second.groups > 1  # pyright: ignore
        return not one and not grouped and first.out_channels >= first.in_channels
    return False


@check(
    "addition-broadcasts",
    "sick",
    "An addition combines each sample with all others",
    source="broadcasting: (N,) + (N, 1) gives (N, N)",
    repaired_by="Give both terms the same shape",
    kind="surgery",
)
def addition_broadcasts(seen: Seen) -> Sign | None:
    """The two terms have different shapes and the sum is larger than both, so that
    entries are combined that do not belong together.
    """
    for call in seen.trace.named("add", "sub", "mul", "iadd"):
        if len(call.inputs) < 2 or "weight" not in seen.trace.origins(call):
            continue
        one, two = sorted(call.inputs[:2], key=lambda tensor: tensor.ndim)
        column = two.ndim == one.ndim + 1 > 1 and two.shape == (*one.shape, 1)
        crossed = one.ndim < two.ndim and one.ndim and len(one) == len(two) > 1
        crossed = crossed and len(one) == seen.samples
        if (column or crossed) and one.numel() > 1:
            if call.outputs[0].numel() > max(one.numel(), two.numel() - column):
                shapes = f"{tuple(one.shape)} and {tuple(two.shape)}"
                made = tuple(call.outputs[0].shape)
                return Sign(
                    1.0, where=call.module, detail=f"Here {shapes} become {made}."
                )
    return None


@check(
    "one-module-for-several",
    "warning",
    "One module is used in several places",
    source="counted: [layer] * n repeats a reference",
    repaired_by="Make a new module for each place",
    kind="surgery",
)
def one_module_for_several(seen: Seen) -> Sign | None:
    """The same weights are used where a list suggests several layers, or one batch norm
    normalises the outputs of different layers, whose statistics it mixes.
    """
    found: list[str] = []
    for path, module in seen.model.named_modules():
        if isinstance(module, nn.Sequential | nn.ModuleList):
            own = [
                id(m)
                for m in module._modules.values()
                if m and len(list(m.parameters()))
            ]
            if len(set(own)) < len(own):
                found.append(path or "the model")
    for name in dict.fromkeys(c.module for c in seen.trace.named("batch_norm")):
        calls = [c for c in seen.trace.named("batch_norm") if c.module == name]
        before = {s.module for c in calls if (s := seen.before(c)) is not None}
        if len(calls) > 1 and len(before) == len(calls):
            found.append(name)
    if not found:
        return None
    return Sign(len(found), where=found)


@check(
    "joined-with-itself",
    "warning",
    "A signal is joined with itself",
    source="the second copy adds nothing that the first does not have",
    repaired_by="Join it with the other branch that was meant",
    kind="surgery",
)
def joined_with_itself(seen: Seen) -> Sign | None:
    """A concatenation or an addition gets the same tensor twice, where two branches
    meet: one of them was overwritten, or never handed over.
    """
    for call in seen.trace.named("cat", "concat", "concatenate", "add"):
        parts = call.inputs[:2] if call.name == "add" else call.inputs
        axis = call.given(1, "dim", 0) if call.name != "add" else 1
        if len(parts) != 2 or parts[0] is not parts[1] or axis == 0:
            continue
        if call.after_model or seen.trace.origins(call) < {"input", "weight"}:
            continue
        shape = tuple(parts[0].shape)
        detail = f"Here {call.name}() gets the same tensor of shape {shape} twice."
        return Sign(2.0, 1.0, where=call.module, detail=detail)
    return None


@check(
    "sine-wraps-around",
    "warning",
    "The argument of a sine spans many periods",
    source="Sitzmann et al. (2020), section 3.2: of size 1; the level is ours",
    repaired_by="Divide the weights of hidden layers by the factor inside the sine",
    kind="initialisation",
    confidence="rule of thumb",
)
def sine_wraps_around(seen: Seen) -> Sign | None:
    """A small change of a hidden signal moves the sine through many periods, so that
    its outputs and gradients are noise.
    """
    bent: set[int] = set()
    for call in seen.trace.named("sin", "cos"):
        if "weight" not in seen.trace.origins(call):
            continue
        size = float(call.inputs[0].detach().double().square().mean().sqrt())
        if size > TURNS and _above(seen, call) & bent:
            detail = f"Their size is {size:.3g}."
            return Sign(size, TURNS, where=call.module, detail=detail)
        bent.add(call.index)
    return None
