"""Convert a module to a list of known layers, or name the layer that is unknown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import _WeightNorm

from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    ConvolutionLayer,
    Exclusive,
    FlattenLayer,
    MeasurementError,
    NonlinearLayer,
    NormMode,
    Parameterisation,
    ResidualLayer,
    SystemBlueprint,
    SystemLayer,
)
from theodolite.networks import (
    Nonlinearity,
    ParameterisedAffine,
    ResidualBlock,
    SystemNetwork,
)

# Arrays by name; for a residual block, a tuple of those of its branch.
Weights = Any


@dataclass(frozen=True, kw_only=True, eq=False)
class RecognisedSystem:
    """The layers of a module, their weights and their names."""

    blueprint: SystemBlueprint  # its layers
    # Arrays by name, per layer; for a residual block, a tuple.
    weights: tuple[Weights, ...]
    names: tuple[str, ...]  # the module's name of each layer


def recognise(
    model: nn.Module, shape: tuple[int, ...], *, norm_mode: NormMode | str = "batch"
) -> RecognisedSystem:
    """Return the system of a module whose layers are all known.

    Known are the networks of a ``SystemBlueprint``, and ``nn.Sequential``, nested or
    not, of ``Linear``, ``Conv2d``, either with torch's weight norm, ``BatchNorm1d``
    and ``2d``, ``Flatten``, ``Identity``, and elementwise functions: Tanh, Sigmoid,
    LogSigmoid, Softplus, Softsign, Tanhshrink, GELU, SiLU, ELU, CELU and ReLU with
    their default settings.

    Args:
        model: The module; not changed.
        shape: Shape of a sample.
        norm_mode: ``batch`` or ``full`` for the batch's statistics, ``eval`` for those
            that batch norms hold, ``as_is`` for those that each uses in its mode.

    Raises:
        MeasurementError: A layer is not known; the message names it.

    Example:
        >>> system = recognise(nn.Sequential(nn.Linear(3, 2), nn.Tanh()), (3,))
        >>> [layer.kind for layer in system.blueprint.layers]
        ['affine', 'nonlinearity']
    """
    mode = NormMode(norm_mode)
    if mode is NormMode.FROZEN:
        raise MeasurementError(
            "norm mode 'frozen' holds statistics of the data, which no layer of a "
            "system does: use 'batch', or 'eval' for statistics that the layers hold"
        )
    with Exclusive():  # no other thread has the model open meanwhile
        layers = _chain(model, "", mode)
        _refuse_tied(model, layers)
    if not layers:
        raise MeasurementError("the model holds no layer: pass one that does")
    return RecognisedSystem(
        blueprint=SystemBlueprint(inputs=shape, layers=tuple(one[1] for one in layers)),
        weights=tuple(one[2] for one in layers),
        names=tuple(one[0] for one in layers),
    )


_NamedLayer = tuple[str, SystemLayer, Weights]


def _chain(module: nn.Module, name: str, mode: NormMode) -> list[_NamedLayer]:
    """Return the layers of a module in the order applied."""
    if module._forward_hooks or module._forward_pre_hooks:
        raise MeasurementError(
            f"{_named(module, name)} has a forward hook, which may change what it "
            "computes: remove the hook, or use torch.nn.utils.parametrizations"
        )
    if isinstance(module, SystemNetwork):
        return _chain(module.layers, _joined(name, "layers"), mode)
    if type(module) is nn.Sequential:
        parts = module.named_children()
        # A module that is used twice has one name; it is rejected as tied later.
        if len(list(module.children())) != len(module):
            raise MeasurementError(
                f"{_named(module, name)} holds a layer twice, and parameters that act "
                "twice have no bounds here: give each place a layer of its own"
            )
        return [
            one
            for part, child in parts
            for one in _chain(child, _joined(name, part), mode)
        ]
    if type(module) is nn.Identity:
        return []
    return [(name, *_layer(module, name, mode))]


def _layer(module: nn.Module, name: str, mode: NormMode) -> tuple[SystemLayer, Weights]:
    if isinstance(module, ResidualBlock):
        parts = _chain(module.branch, _joined(name, "branch"), mode)
        branch = tuple(one[1] for one in parts)
        return ResidualLayer(branch=branch), tuple(one[2] for one in parts)
    if isinstance(module, ParameterisedAffine):
        return module.layer, _arrays(
            weight=module.weight, lengths=module.lengths, bias=module.bias
        )
    if isinstance(module, Nonlinearity):
        return NonlinearLayer(activation=module.activation), {}
    kind = parametrize.type_before_parametrizations(module)
    if kind is nn.Linear or kind is nn.Conv2d:
        return _weighted(module, kind, name)
    if kind in (nn.BatchNorm1d, nn.BatchNorm2d):
        return _batch_norm(module, mode)
    if kind is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1):
        return FlattenLayer(), {}
    activation, is_default = _ACTIVATIONS.get(type(module), ("", lambda _: False))
    if is_default(module):
        return NonlinearLayer(activation=activation), {}
    raise MeasurementError(
        f"{_named(module, name)} is a layer without known bounds: use layers that "
        "certificates know, such as Linear, Conv2d, BatchNorm1d or Tanh, or those of a "
        "SystemBlueprint"
    )


def _weighted(
    module: Any, kind: type[nn.Module], name: str
) -> tuple[SystemLayer, Weights]:
    way, parts = _parameterisation(module, name)
    weights = _arrays(**parts, bias=module.bias)
    common = {"parameterisation": way, "bias": module.bias is not None}
    if kind is nn.Linear:
        layer = AffineLayer(into=module.in_features, out=module.out_features, **common)
        return layer, weights
    plain = (module.groups, tuple(module.dilation), module.padding_mode)
    if plain != (1, (1, 1), "zeros") or isinstance(module.padding, str):
        raise MeasurementError(
            f"{_named(module, name)} has groups, dilation, or a padding that is not of "
            "a number of zeros, whose bounds are not known: use a plain Conv2d"
        )
    layer = ConvolutionLayer(
        into=module.in_channels,
        out=module.out_channels,
        kernel=tuple(module.kernel_size),
        stride=tuple(module.stride),
        padding=tuple(module.padding),
        **common,
    )
    return layer, weights


def _parameterisation(
    module: Any, name: str
) -> tuple[Parameterisation, dict[str, Tensor]]:
    if not parametrize.is_parametrized(module):
        return "plain", {"weight": module.weight}
    parts = module.parametrizations
    one = parts["weight"] if list(parts) == ["weight"] else ()
    if len(one) != 1 or not isinstance(one[0], _WeightNorm) or one[0].dim != 0:
        kinds = ", ".join(type(part).__name__.strip("_") for part in one) or "another"
        raise MeasurementError(
            f"{_named(module, name)} has a parametrisation without known bounds "
            f"({kinds}): use weight_norm over dim=0, or none"
        )
    return "length_direction", {
        "lengths": one.original0.reshape(-1),
        "weight": one.original1,
    }


def _batch_norm(module: Any, mode: NormMode) -> tuple[SystemLayer, Weights]:
    still = mode is NormMode.EVAL or (mode is NormMode.AS_IS and not module.training)
    held = still and module.running_mean is not None
    layer = BatchNormLayer(
        features=module.num_features,
        eps=module.eps,
        affine=module.affine,
        statistics="held" if held else "batch",
    )
    weights = _arrays(weight=module.weight, bias=module.bias)
    if held:
        weights |= _arrays(mean=module.running_mean, variance=module.running_var)
    return layer, weights


_ACTIVATIONS: dict[type[nn.Module], tuple[str, Callable[[Any], bool]]] = {
    nn.Tanh: ("tanh", lambda _: True),
    nn.Sigmoid: ("sigmoid", lambda _: True),
    nn.LogSigmoid: ("log_sigmoid", lambda _: True),
    # Beyond the threshold torch takes the identity; slopes jump there by e^-threshold.
    nn.Softplus: ("softplus", lambda m: m.beta == 1 and m.threshold >= 20),
    nn.Softsign: ("softsign", lambda _: True),
    nn.Tanhshrink: ("tanhshrink", lambda _: True),
    nn.GELU: ("gelu", lambda m: m.approximate == "none"),
    nn.SiLU: ("silu", lambda _: True),
    nn.ELU: ("elu", lambda m: m.alpha == 1),
    nn.CELU: ("elu", lambda m: m.alpha == 1),
    nn.ReLU: ("relu", lambda _: True),
}


def _arrays(**tensors: Tensor | None) -> dict[str, np.ndarray]:
    return {
        name: one.detach().double().cpu().numpy()
        for name, one in tensors.items()
        if one is not None
    }


def _refuse_tied(model: nn.Module, layers: list[_NamedLayer]) -> None:
    seen: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if id(parameter) in seen:
            raise MeasurementError(
                f"parameter {name} is also {seen[id(parameter)]}, and parameters that "
                "act twice have no bounds here: give each layer its own"
            )
        seen[id(parameter)] = name
    known = sum(layer.parameters for _, layer, _ in layers)
    if known != sum(one.numel() for one in model.parameters()):
        raise MeasurementError(
            "the model has parameters besides those of its layers: pass one whose "
            "layers hold them all"
        )


def _named(module: nn.Module, name: str) -> str:
    kind = parametrize.type_before_parametrizations(module).__name__
    return f"layer {name} ({kind})" if name else f"the model ({kind})"


def _joined(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part
