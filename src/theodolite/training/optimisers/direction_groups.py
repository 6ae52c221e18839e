"""Which parameters of a model are directions, and which of them have no scale."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from theodolite.core import ConfigError, MeasurementError, unknown_name
from theodolite.instruments import preserve
from theodolite.training.optimisers.norm_schedules import NormSchedule

# Doubling weights in front of a batch norm moves outputs by its epsilon alone.
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
    no effect on outputs, since a batch norm follows, keep the norm they have and take
    no part in $\rho$ (Poggio & Liao, section 2.3, set $\rho_k = 1$ for them); the norms
    of all others make up $\rho$. Biases and gains of norms are moved as by SGD; with
    biases $g = \rho f$ holds no longer, and $\rho$ is the product of norms.

    Args:
        model: Any module.
        rho: Norm, or schedule of it, of the directions that have a scale.
        inputs: A batch on which to double each direction in turn, in train mode, the
            model left as found: where outputs stay the same, it has no scale.
        invariant: Names of directions that have none, beside those found so.
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
    if not isinstance(model, nn.Module):
        raise MeasurementError(
            f"a {type(model).__name__} came, wanted is a torch.nn.Module: pass the "
            "network itself"
        )
    free = {name: p for name, p in model.named_parameters() if p.requires_grad}
    chosen = (
        _directions(model, free) if directions is None else _named(directions, free)
    )
    if not chosen:
        raise MeasurementError(
            f"{type(model).__name__} has no linear or convolutional layer whose "
            "weights could be directions: name some with directions=…"
        )
    fixed = set(_named(invariant, chosen))
    if inputs is not None:
        rest = [name for name in chosen if name not in fixed]
        fixed |= set(scale_free(model, inputs, rest))
    groups = [
        {"params": _pick(free, [n for n in chosen if n not in fixed]), "rho": rho},
        {"params": _pick(free, [n for n in chosen if n in fixed]), "rho": None},
        {
            "params": _pick(free, [n for n in free if n not in chosen]),
            "sphere": False,
            "weight_decay": weight_decay,
        },
    ]
    if not groups[0]["params"]:
        raise MeasurementError(
            "no direction has a scale, since outputs stay the same where each is "
            "doubled: leave the last layer without a norm, so that rho means something"
        )
    return [group for group in groups if group["params"]]


def scale_free(model: nn.Module, inputs: Any, names: Sequence[str]) -> list[str]:
    """Return the parameters that may be doubled without effect on outputs."""
    found = []
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
            parameters[name].mul_(2)
            off = float((_outputs(model, inputs) - start).norm())
            parameters[name].div_(2)
            if off <= _SAME * size:
                found.append(name)
    return found


def _outputs(model: nn.Module, inputs: Any) -> Tensor:
    # The same draws for dropout, whatever is doubled.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            found = (
                model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)
            )
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise MeasurementError(
                f"{type(model).__name__} does not run on the inputs ({error}): pass a "
                "batch that it takes, or name scale-free parameters with invariant=…"
            ) from error
    if not isinstance(found, Tensor) or not bool(torch.isfinite(found).all()):
        raise MeasurementError(
            f"{type(model).__name__} returned no tensor of finite numbers: pass other "
            "inputs, or name scale-free parameters with invariant=…"
        )
    return found.double()


def _directions(model: nn.Module, free: dict[str, nn.Parameter]) -> list[str]:
    owners = {
        id(module.weight)
        for module in model.modules()
        if isinstance(module, nn.Linear | nn.Bilinear | _ConvNd)
    }
    return [name for name, p in free.items() if id(p) in owners]


def _named(names: Iterable[str], known: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise ConfigError(f"names are {names!r}: pass a list of them")
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise unknown_name("direction", name, known)
    return [name for name in known if name in wanted]


def _pick(
    free: dict[str, nn.Parameter], names: Iterable[str]
) -> list[tuple[str, nn.Parameter]]:
    return [(name, free[name]) for name in names]
