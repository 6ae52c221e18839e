r"""The same operator with other rounding, to see the rounding of a graph.

What a graph in float32 computes differs from exact arithmetic by more than its last sum
shows, as much as its layers amplify what is rounded before them. A twin tells: a copy
of the model in float64, at the same weights and on the same data, whose own rounding is
a billion times smaller. Where nothing finer is to be had, since the model is float64
and casts to float32 within, or cannot be converted, or since memory is short, the twin
is a copy whose weights, and what its layers return, are moved by one rounding of the
coarsest type in its graph, up or down by chance (as in Monte Carlo arithmetic).

References:
    Parker (1997), Monte Carlo arithmetic: exploiting randomness in floating-point
    arithmetic, UCLA.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from theodolite.core import MeasurementError, TeamError, TheodoliteError
from theodolite.instruments.operators.coarsest import Coarsest
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.passes.forecast import available_bytes, float64_bytes
from theodolite.instruments.team.processes import Team

# A twin that is moved differs by two independent roundings, or by one that happened to
# be small: the difference counts so many times, by choice.
_MOVED = 3.0
# Numbers from which on a card draws by itself how they are rounded.
_MANY = 2**22


@dataclass(frozen=True)
class Twin:
    """An operator to compare with.

    Attributes:
        operator: The twin.
        factor: How many times the difference an error may be.
        finer: Whether the twin is exact for our purpose, or rounded as coarsely.
    """

    operator: Operator
    factor: float
    finer: bool


def twin_of(operator: Operator, *, once: bool = False) -> Twin | None:
    """Make a twin, or None where the operator's model cannot be copied.

    Under a team all of its processes make one together, or none does.

    Args:
        operator: What it is a twin of.
        once: Whether it is for a single product, which may then take less memory.
    """
    make = operator.remade_once if once else operator.remade
    team = _team_of(operator)
    drawn = getattr(operator, "randomness", "refuse") == "fixed"
    changes = [_copied]
    if operator.dtype != torch.float64 and not drawn:  # masks depend on the type
        changes = [_in_float64, _copied] if _has_room(operator, once) else [_copied]
    for change in changes:
        with Coarsest() as seen:
            found = _remade(make, seen.apart(change), team)
        if found is None:
            continue
        fine, coarsest = torch.finfo(torch.float64).eps, team.largest(seen.eps)
        if found.dtype == torch.float64 and coarsest <= fine:
            if operator.dtype != torch.float64:
                return Twin(found, 1.0, finer=True)
        eps = max(coarsest, torch.finfo(found.dtype).eps)
        moved = _remade(make, _moving(change, eps), team)
        return None if moved is None else Twin(moved, _MOVED, finer=False)
    return None


def _has_room(operator: Operator, once: bool) -> bool:
    """Whether products of a copy in float64 fit beside what is there, everywhere."""
    size, peak = operator.shape[1], getattr(operator, "forecast_bytes", None)
    if once:
        peak = getattr(operator, "once_bytes", peak)
    here, elsewhere = available_bytes(operator.device), operator.free_elsewhere()
    if elsewhere is not None:  # what graphs take they take there
        fits = float64_bytes(size, None) <= here
        return fits and float64_bytes(size, peak) <= elsewhere
    return not _team_of(operator).largest(float64_bytes(size, peak) > here)


def _team_of(operator: Operator) -> Team:
    """Return those who multiply together."""
    return getattr(operator, "team", None) or Team()


def _remade(
    make: Callable[[Callable[[Any], Any]], Operator | None],
    change: Callable[[Any], Any],
    team: Team,
) -> Operator | None:
    """Make the operator of changed inputs, None where they do not run on some rank."""
    try:
        with team.telling():
            found = make(_on_all(change, team))
    except TeamError:  # one that was lost says nothing of the inputs
        raise
    except (TheodoliteError, RuntimeError, TypeError, ValueError):
        found = None
    return None if team.largest(found is None) else found


def _on_all(change: Callable[[Any], Any], team: Team) -> Callable[[Any], Any]:
    """Change the model, which is first, on all ranks or on none.

    Those who could would else wait for those who could not.
    """
    agreed = not team.several

    def changed(given: Any) -> Any:
        nonlocal agreed
        if agreed:
            return change(given)
        agreed, found, why = True, None, None
        try:
            found = change(given)
        except (TheodoliteError, RuntimeError, TypeError, ValueError) as error:
            why = error
        if team.largest(why is not None):
            raise why or MeasurementError("the model of another rank has no copy")
        return found

    return changed


class Several:
    """Changed batches, as an iterable that is not taken for one; one at a time."""

    def __init__(self, items: Sequence[Any], change: Callable[[Any], Any]) -> None:
        self._items, self._change = items, change

    def __iter__(self) -> Iterator[Any]:
        return (self._change(item) for item in self._items)


def _moving(change: Callable[[Any], Any], eps: float) -> Callable[[Any], Any]:
    """Move the first module that is changed, which is the model, as well."""
    models: list[nn.Module] = []

    def changed(given: Any) -> Any:
        found = change(given)
        if isinstance(found, nn.Module) and not models:
            models.append(found)
            _move(found, eps)
        return found

    return changed


def _copied(given: Any) -> Any:
    if isinstance(given, nn.Module):
        return copy.deepcopy(given)
    return given


def _in_float64(given: Any) -> Any:
    if isinstance(given, nn.Module):
        return copy.deepcopy(given).double()
    if callable(given) or given is None:
        return given
    if isinstance(given, Mapping) and not isinstance(given, dict):
        return type(given)({key: _in_float64(value) for key, value in given.items()})  # pyright: ignore[reportCallIssue]
    return tree_map(_double, given)


def _double(leaf: Any) -> Any:
    real = isinstance(leaf, Tensor) and leaf.is_floating_point()
    return leaf.double() if real else leaf


def _move(model: nn.Module, eps: float) -> None:
    """Round all weights, and what every layer returns, up or down by chance."""
    with torch.no_grad():
        for place, parameter in enumerate(model.parameters()):
            if parameter.is_floating_point():
                moved = parameter.double() * _factors(parameter, eps, place)
                parameter.copy_(moved)
    for place, module in enumerate(model.modules()):
        if not any(True for _ in module.children()):
            module.register_forward_hook(_rounding(eps, place))


def _rounding(eps: float, place: int) -> Callable[[nn.Module, Any, Any], Any]:
    def rounded(_: nn.Module, args: Any, found: Any) -> Any:
        def each(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or not leaf.is_floating_point():
                return leaf
            return leaf * _factors(leaf, eps, place).to(leaf.dtype)

        return tree_map(each, found)

    return rounded


def _factors(like: Tensor, eps: float, place: int) -> Tensor:
    """Return 1 ± eps in the shape of a tensor, the same every time.

    Many of them are a card's own, which draws them in no time.
    """
    there = like.device.type == "cuda" and like.numel() >= _MANY
    generator = torch.Generator(like.device if there else "cpu").manual_seed(place)
    drawn = torch.randint(
        0, 2, like.shape, generator=generator, device=generator.device
    )
    return 1 + eps * (2.0 * drawn.to(like.device, torch.float64) - 1.0)
