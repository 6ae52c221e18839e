"""How weights start: at random, and not all equal."""

import math

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from .check import Sign, check
from .reach import listed, wanted
from .seen import Seen

# Share of weights that is trained at least when adapters are fitted: our choice.
TRAINED = 0.01
# Share of all weights that are frozen at random: our choice.
MOSTLY = 0.5
# Share of the units of a layer that biases shut: our choice.
SHUT = 0.9
_BIASED = ("linear", "conv1d", "conv2d", "conv3d")
_TRAINED = """\
for path in {paths!r}:
    model.get_submodule(path).requires_grad_(True)
known = {{id(p) for g in optimizer.param_groups for p in g["params"]}}
new = [p for p in model.parameters() if id(p) not in known]
if new:
    optimizer.add_param_group({{"params": new}})
"""


@check(
    "frozen-at-random",
    "warning",
    "Frozen layers still have their random initial weights",
    source="torch draws weights from ±1/sqrt(fan-in); trained ones leave that range",
    repaired_by="Train the frozen layers",
)
def frozen_at_random(seen: Seen) -> Sign | None:
    """These layers do not require a gradient, and their weights still have exactly
    the distribution of an untrained layer. Freezing is meant for trained layers.
    """
    frozen = [n for n, m in seen.model.named_modules() if _fresh_and_frozen(m)]
    quiet = {c.module for c in seen.trace.calls if not c.grad_enabled}
    frozen = [n for n in frozen if n in seen.trace.visits and n not in quiet]
    trained = any(p.requires_grad for p in seen.model.parameters())
    if not frozen or not trained:
        return None
    sizes = [(p.numel(), p.requires_grad) for p in seen.model.parameters()]
    share = sum(n for n, on in sizes if on) / sum(n for n, _ in sizes)
    layers = [c.module for c in seen.trace.named("linear", "conv1d", "conv2d")]
    head = share <= TRAINED and layers and layers[-1] in frozen
    alone = [n for n in frozen if not _adapted(seen.model, n)]
    inner = [p for n in alone for p in seen.model.get_submodule(n).parameters()]
    if not head and sum(p.numel() for p in inner) < MOSTLY * sum(n for n, _ in sizes):
        return None
    return Sign(
        len(frozen),
        where=frozen,
        detail=f"Here: {listed(frozen)}.",
        repair=_TRAINED.format(paths=frozen),
    )


def _adapted(model: nn.Module, path: str) -> bool:
    """Return whether trained weights stand beside a frozen layer, as those of LoRA."""
    parent = model.get_submodule(path.rpartition(".")[0])
    plain = isinstance(parent, nn.Sequential | nn.ModuleList) or parent is model
    return not plain and any(p.requires_grad for p in parent.parameters())


def _fresh_and_frozen(module: nn.Module) -> bool:
    if not isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
        return False
    if is_parametrized(module):  # of which reading may change the state
        return False
    weight = module.weight.detach()
    if module.weight.requires_grad or weight.numel() < 32:
        return False
    return _is_uniform(weight, 1 / math.sqrt(weight[0].numel()))


def _is_uniform(weight: Tensor, bound: float) -> bool:
    """Return whether numbers fill an interval evenly and do not leave it."""
    scaled = weight.double().abs().flatten() / bound
    spread = float(
        (scaled.sort()[0] - torch.linspace(0, 1, len(scaled), device="cpu")).abs().max()
    )
    return float(scaled.max()) <= 1.0001 and spread < 1.63 / math.sqrt(len(scaled))


@check(
    "weights-all-equal",
    "sick",
    "All weights of a layer are equal",
    source="gradient descent keeps equal units equal",
    repaired_by="Re-initialise these layers",
    kind="initialisation",
)
def weights_all_equal(seen: Seen) -> Sign | None:
    """Units with equal weights get equal gradients and stay equal for ever, so that the
    layer acts as one unit. Weights start at random numbers.
    """
    layers = (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase, nn.RNNCellBase)
    kinds = dict(seen.model.named_modules())
    owners = [
        owner
        for name, p in wanted(seen).items()
        if isinstance(layer := kinds.get(owner := name.rpartition(".")[0]), layers)
        if p.ndim > 1 and min(p.shape[:2]) > 1 and p.numel() > 8
        if bool((p != 0).all()) and bool((p == p.detach().flatten()[0]).all())
        if bool(p.isfinite().all()) and not seen.is_last(layer)
    ]
    if not owners:
        return None
    repair = (
        f"for path in {owners!r}:\n    model.get_submodule(path).reset_parameters()\n"
    )
    return Sign(len(owners), where=owners, repair=repair)


@check(
    "zeros-stay-zero",
    "sick",
    "Weights that start at zero stay at zero",
    source="behind a zero there is no gradient; seen in the trial steps as well",
    repaired_by="Re-initialise these layers",
    kind="initialisation",
)
def zeros_stay_zero(seen: Seen) -> Sign | None:
    """All weights of these layers, or scales of these norms, are 0, and the gradient by
    them is 0 too, or the same for all units: they block the signal, or stay copies of
    each other. One such layer, at the end of a branch or of the network, is sound.
    """
    modules, owners = dict(seen.model.named_modules()), dict[str, None]()
    every = not any(p.any() for p in seen.model.parameters() if p.ndim > 1)
    for name, p in wanted(seen).items():
        owner, _, own = name.rpartition(".")
        scale = own == "weight" and "Norm" in type(modules[owner]).__name__
        if p.numel() < 2 or (p.ndim < 2 and not scale) or bool(p.any()):
            continue
        grad = seen.gradients.get(name)
        if grad is None:
            continue
        still = name not in seen.reached | seen.course.reached
        alike = name in seen.reached and p.ndim > 1 and len(p) > 2
        alike = alike and bool((grad == grad[:1]).all())
        if still or ((alike or every) and not seen.is_last(modules[owner])):
            owners[owner] = None
    if not owners or seen.course.error:
        return None
    repair = f"for path in {[*owners]!r}:\n"
    repair += "    model.get_submodule(path).reset_parameters()\n"
    detail = f"Here: {listed(owners)}."
    return Sign(len(owners), where=owners, detail=detail, repair=repair)


@check(
    "biases-shut-units",
    "sick",
    "Biases keep nearly all ReLU units of a layer at zero",
    source="a rectifier that is shut has derivative 0; the level of 0.9 is ours",
    repaired_by="Set the biases of hidden layers to zero",
    kind="initialisation",
)
def biases_shut_units(seen: Seen) -> Sign | None:
    """The biases are so far below zero that the units are 0 for every sample. Without
    the biases they would be active.
    """
    worst, where = 0.0, list[str]()
    for call in seen.trace.named("relu", "relu6"):
        layer = seen.trace.calls[call.sources[0]] if call.sources[0] >= 0 else None
        bias = layer.given(2, "bias") if layer and layer.name in _BIASED else None
        if layer is None or not isinstance(bias, Tensor) or len(bias) < 8:
            continue
        axis = -1 if layer.name == "linear" else 1
        made = layer.outputs[0].detach().movedim(axis, -1).flatten(0, -2)
        shut = (made <= 0).all(0) & (made > bias.detach()).any(0)
        worst = max(worst, float(shut.double().mean()))
        where += [layer.module] * bool(bias.requires_grad and bias.max() < 0)
    if worst <= SHUT or not where:
        return None
    repair = (
        f"for path in {where!r}:\n    model.get_submodule(path).bias.data.zero_()\n"
    )
    detail = f"{worst:.0%} of the units of a layer are always 0."
    return Sign(worst, SHUT, where=where, detail=detail, repair=repair)
