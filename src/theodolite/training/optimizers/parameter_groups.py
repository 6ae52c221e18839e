"""Parameter groups for ``SphereSGD``: directions with and without a scale."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.conv import _ConvNd

from theodolite.core import Exclusive, MeasurementError, unknown_name
from theodolite.instruments import map_tensors, preserve, reseed

from .norm_schedules import NormSchedule

# Doubling weights before a batch norm changes outputs only through its epsilon.
_SAME = 1e-2


def sphere_groups(
    model: nn.Module,
    *,
    rho: float | NormSchedule,
    inputs: Any = None,
    invariant: Iterable[str] = (),
    directions: Iterable[str] | None = None,
    weight_decay: float = 0.0,
) -> list[dict[str, Any]]:
    r"""Sort the parameters of a model into groups for :class:`SphereSGD`.

    Directions are the weights of linear and convolutional layers. Those whose scale has
    no effect on outputs, because a batch norm follows, keep their norm and do not count
    in $\rho$ (Poggio & Liao, section 2.3, set $\rho_k = 1$ for them); $\rho$ is the
    product of the norms of all others. Biases and gains of norms are moved as by SGD;
    with biases $g = \rho f$ no longer holds.

    Args:
        model: Any module.
        rho: Norm, or schedule of it, of the directions that have a scale.
        inputs: A batch for a test of each direction, in train mode: if outputs stay the
            same when it is doubled, it has no scale. The model is not changed.
        invariant: Names of further directions that have no scale.
        directions: Names of the parameters that are directions, in place of the above.
        weight_decay: Of the parameters that are no directions.

    Returns:
        Up to three groups, each with its parameters and their names.

    Example:
        >>> first, last = nn.Linear(4, 3), nn.Linear(3, 1, bias=False)
        >>> model = nn.Sequential(first, nn.BatchNorm1d(3), nn.ReLU(), last)
        >>> for group in sphere_groups(model, rho=2.0, inputs=torch.randn(8, 4)):
        ...     print([name for name, _ in group["params"]], group.get("rho"))
        ['3.weight'] 2.0
        ['0.weight'] None
        ['0.bias', '1.weight', '1.bias'] None
    """
    with Exclusive():  # another thread that measures the model sets these flags
        free = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if directions is None:
        layers = nn.Linear | nn.Bilinear | _ConvNd
        owned = {id(m.weight) for m in model.modules() if isinstance(m, layers)}
        directions = [name for name, p in free.items() if id(p) in owned]
    chosen = _named(directions, free)
    if not chosen:
        raise MeasurementError(
            f"{type(model).__name__} has no linear or convolutional layer whose "
            "weights could be directions: name some with directions=…"
        )
    fixed = set(_named(invariant, chosen))
    if inputs is not None:
        fixed |= _scale_free(model, inputs, [n for n in chosen if n not in fixed])
    scaled = [(n, free[n]) for n in chosen if n not in fixed]
    unscaled = [(n, free[n]) for n in chosen if n in fixed]
    others = [(n, p) for n, p in free.items() if n not in chosen]
    groups = [
        {"params": scaled, "rho": rho},
        {"params": unscaled, "rho": None},
        {"params": others, "sphere": False, "weight_decay": weight_decay},
    ]
    if not scaled:
        raise MeasurementError(
            "no direction has a scale, since outputs stay the same where each is "
            "doubled: leave the last layer without a norm, so that rho means something"
        )
    return [group for group in groups if group["params"]]


def _scale_free(model: nn.Module, inputs: Any, names: list[str]) -> set[str]:
    """Return the parameters that can be doubled without changing outputs."""
    unchanged = set()
    with preserve(model), torch.no_grad():
        model.train()
        start = _outputs(model, inputs)
        size = float(start.norm())
        if size == 0:
            raise MeasurementError(
                "outputs are empty or zero on these inputs, and so tell no direction "
                "from another: pass other inputs, or names with invariant=…"
            )
        parameters = dict(model.named_parameters())
        for name in names:
            # Not in place: that would spoil graphs that other threads keep.
            doubled = {name: 2 * parameters[name]}
            off = float((_outputs(model, inputs, doubled) - start).norm())
            if off <= _SAME * size:
                unchanged.add(name)
    return unchanged


def _outputs(
    model: nn.Module, inputs: Any, weights: Mapping[str, Tensor] | None = None
) -> Tensor:
    # Dropout draws the same numbers each time.
    reseed(0)
    try:
        several = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
        several = map_tensors(several, Tensor.clone)  # which a model may write to
        outputs = functional_call(model, dict(weights or {}), several)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise MeasurementError(
            f"{type(model).__name__} does not run on the inputs ({error}): pass a "
            "batch that it takes, or name scale-free parameters with invariant=…"
        ) from error
    if not isinstance(outputs, Tensor) or not bool(torch.isfinite(outputs).all()):
        raise MeasurementError(
            f"{type(model).__name__} returned no tensor of finite numbers: pass other "
            "inputs, or name scale-free parameters with invariant=…"
        )
    return outputs.double()


def _named(names: Iterable[str], known: Iterable[str]) -> list[str]:
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise unknown_name("direction", name, known)
    return [name for name in known if name in wanted]
