"""Path ensembles of a network as it is, and with other scales."""

import copy
from typing import TYPE_CHECKING, Any

from theodolite import networks, paths

if TYPE_CHECKING:
    from torch import Tensor

Numbers = dict[str, tuple[float, float]]


def held(network: Any, inputs: "Tensor") -> Any:
    """Return a float64 copy whose norm layers use the fixed statistics of one batch."""
    import torch
    from torch import nn

    twin = copy.deepcopy(network).double()
    for norm in twin.modules():
        if isinstance(norm, networks.ScalarNorm | nn.BatchNorm1d | nn.BatchNorm2d):
            norm.momentum = 1.0
    twin.train()
    with torch.no_grad():
        twin(inputs.double())
    return twin.eval()


def ensemble(
    network: Any,
    inputs: "Tensor",
    labels: "Tensor",
    probes: int,
    *,
    fixed: bool = False,
) -> Numbers:
    """Return shares of branches taken and fitted scales, each with its error.

    Norms keep the statistics of the batch, or their own if they are ``fixed``; paths of
    ``probes`` of its samples are followed. Errors are those of these very samples.
    Which samples they are differs from network to network, so that the spread over
    networks covers their choice.
    """
    import torch
    from torch import nn

    twin = network if fixed else held(network, inputs)
    part = (inputs[:probes].double(), labels[:probes])
    # Every stack length has another shape, so that cuDNN's benchmark does not pay. Not
    # by cudnn.flags, which fails where TF32 is set by newer names.
    cudnn: Any = torch.backends.cudnn
    before, cudnn.benchmark = cudnn.benchmark, False
    try:
        reading = paths.path_ensemble(
            twin, part, norm_mode="eval", loss=nn.CrossEntropyLoss(), biases=False
        )
    finally:
        cudnn.benchmark = before
    units = reading.energy.shape[1] - 1
    numbers: Numbers = {}
    for name in ("output", "gradient"):
        one = reading.of(name)
        share, residual = one["share"], one["residual"]
        # A length counts the first layer, which no skip passes, and so does the depth.
        below = sum(s for r, s in enumerate(share, start=1) if 2 * r < len(share))
        numbers |= {
            f"{name}_depth": (one["effective_depth"] / units, residual),
            f"{name}_spread": (one["spread"], residual * units),
            f"{name}_beta": (one["beta"], residual * units * one["beta"]),
            f"{name}_distance": (one["distance"], residual),
            f"{name}_below_half": (float(below), residual),
        }
    gains = float(reading.predicted_beta)
    return numbers | {"gain_beta": (gains, 1e-9 * gains)}


def depth_alone(
    network: Any,
    inputs: "Tensor",
    labels: "Tensor",
    probes: int,
    *,
    fixed: bool = False,
) -> Numbers:
    """Return only the two effective depths."""
    numbers = ensemble(network, inputs, labels, probes, fixed=fixed)
    return {name: numbers[name] for name in ("output_depth", "gradient_depth")}


def scaled(network: Any, factor: float) -> Any:
    """Return a copy with all scales of its branches times a factor.

    The scales are those of the norms where there are any, else the weights of the
    branches' layers.
    """
    import torch

    twin = copy.deepcopy(network)
    with torch.no_grad():
        for unit in twin.units:
            for weight in _norms(unit) or _weights(unit):
                weight.mul_(factor)
    return twin


def reset(network: Any) -> Any:
    """Return a copy whose branches have their initial scales.

    Scales of norm layers are set to one, shifts to zero. Without norm layers every
    weight of a branch is rescaled to its initial norm and keeps its direction.
    """
    import torch
    from torch import nn

    twin = copy.deepcopy(network)
    sizes = iter(getattr(twin, "start_sizes", ()))
    with torch.no_grad():
        for unit in twin.units:
            for norm in unit.modules():
                if isinstance(norm, networks.ScalarNorm):
                    norm.scale.fill_(1.0)
                elif isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
                    norm.weight.fill_(1.0)
                    norm.bias.zero_()
            if _norms(unit):
                continue
            for weight in _weights(unit):
                weight.mul_(next(sizes) / weight.norm())
    return twin


def remember_sizes(network: Any) -> Any:
    """Store the norms of all branch weights on the network, and return it."""
    network.start_sizes = [
        float(weight.detach().norm())
        for unit in network.units
        for weight in _weights(unit)
    ]
    return network


def scale_of(network: Any) -> float:
    """Return the mean magnitude of the branches' scales, or their weights' size."""
    import torch

    norms = [norm for unit in network.units for norm in _norms(unit)]
    if norms:
        sizes = [norm.detach().abs().double().mean() for norm in norms]
        return float(torch.stack(sizes).mean())
    weights = [weight for unit in network.units for weight in _weights(unit)]
    total = sum(float(weight.detach().double().square().sum()) for weight in weights)
    return (total / sum(weight.numel() for weight in weights)) ** 0.5


def _norms(unit: Any) -> list[Any]:
    from torch import nn

    scales = []
    for norm in unit.modules():
        if isinstance(norm, networks.ScalarNorm):
            scales.append(norm.scale)
        elif isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
            scales.append(norm.weight)
    return scales


def _weights(unit: Any) -> list[Any]:
    from torch import nn

    return [
        layer.weight
        for layer in unit.modules()
        if isinstance(layer, nn.Linear | nn.Conv2d)
    ]
