r"""The same operator with other rounding, to measure the rounding of a graph.

A graph in float32 differs from exact arithmetic by more than the rounding of its last
sum: layers amplify what was rounded before them. The reference measures this. It is a
copy of the model in float64, with the same weights and data, whose rounding is a
billion times smaller. Sometimes there is no such copy: the model is in float64 and
casts to float32 inside, it cannot be converted, or memory is short. Then the reference
is a copy whose weights and layer outputs are changed by one rounding of the lowest
precision in its graph, randomly up or down (Monte Carlo arithmetic).

References:
    Parker (1997), Monte Carlo arithmetic: exploiting randomness in floating-point
    arithmetic, UCLA.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from theodolite.core import (
    DistributedError,
    Exclusive,
    MeasurementError,
    TheodoliteError,
)

from ..calls.listening import LowestPrecision
from ..distributed.processes import Team
from ..passes.batches import are_two_alike, split_batch
from ..passes.forecast import available_bytes, float64_bytes
from .matrix_operator import Identity, MatrixOperator
from .operator import Operator

# A perturbed copy differs by two independent roundings, or by one that happens to be
# small: the difference counts so many times, by choice.
_PERTURBED = 3.0
# Distance of the seeds of two operands: more than there are tensors and layers.
_APART = 2**24
# From so many numbers on, a GPU draws random roundings itself.
_DRAWN_ON_GPU = 2**22


@dataclass(frozen=True)
class RoundingReference:
    """An operator with different rounding, to compare with.

    Attributes:
        operator: Operator of the copy.
        factor: The error is at most this factor times the difference.
        finer: Whether the copy is in higher precision, so that it counts as exact.
    """

    operator: Operator
    factor: float
    finer: bool


def rounding_reference(
    operator: Operator, *, once: bool = False, seed: int = 0
) -> RoundingReference | None:
    """Return a reference, or None if the operator's model cannot be copied.

    Under a team either all processes make one or none does. That of a combination is
    the combination of its parts' references, whose roundings are independent.

    Args:
        operator: The operator to compare with.
        once: Whether it is for a single product, which may take less memory.
        seed: Seed of random roundings.
    """
    if operator.parts:
        return _combined_reference(operator, once=once)
    if (source := operator.source) is None:
        return None
    team, drawn = source.team, getattr(source, "randomness", "refuse") == "fixed"
    split = source.split_once() if once and source is operator else None
    changes = [_copied]
    if source.torch_dtype != torch.float64 and not drawn:  # masks depend on the type
        changes = [_in_float64, _copied] if _has_room(operator, once) else [_copied]
    for change in changes:
        if (remade := _remade(source, change, split)) is None:
            continue
        fine, lowest = torch.finfo(torch.float64).eps, team.largest(remade.lowest)
        if remade.operator.torch_dtype == torch.float64 and lowest <= fine:
            if source.torch_dtype != torch.float64:
                exact = _standing_in(operator, remade.operator)
                return RoundingReference(exact, 1.0, finer=True)
        eps = max(lowest, torch.finfo(remade.operator.torch_dtype).eps)
        perturb = partial(_perturb, eps=eps, seed=seed)
        perturbed = _remade(source, change, split, perturb)
        if perturbed is None:
            return None
        other = _standing_in(operator, perturbed.operator)
        return RoundingReference(other, _PERTURBED, finer=False)
    return None


def _standing_in(operator: Operator, source: Operator) -> Operator:
    """Return the operator with a copy of its source."""
    return source if operator.source is operator else operator.with_source(source)


def _combined_reference(operator: Operator, *, once: bool) -> RoundingReference | None:
    """Return the combination of references of its parts; given matrices are exact."""
    known: dict[int, RoundingReference] = {}

    def made(part: Operator) -> Operator | None:
        if id(part) in known:
            return known[id(part)].operator
        if isinstance(part, MatrixOperator | Identity):
            return part.converted(torch.float64)
        if part.parts:
            inner = [made(one) for one in part.parts]
            fine = [one for one in inner if one is not None]
            return part.rebuilt(fine) if len(fine) == len(inner) else None
        reference = rounding_reference(part, once=once, seed=len(known) * _APART)
        if reference is None:
            return None
        known[id(part)] = reference
        return reference.operator

    combined = made(operator)
    if combined is None or not known:
        return None
    factor = max(one.factor for one in known.values())
    finer = all(one.finer for one in known.values())
    return RoundingReference(combined, factor, finer=finer)


def in_float64(operator: Any) -> Any:
    """Return the operator of a copy in float64, or None where none can be made."""
    if not _has_room(operator, once=False):
        return None
    remade = _remade(operator, _in_float64, None)
    return None if remade is None else remade.operator


def _has_room(operator: Any, once: bool) -> bool:
    """Whether products of a copy in float64 fit in free memory, on all ranks."""
    size, peak = operator.shape[1], getattr(operator, "forecast_bytes", None)
    if once:
        peak = getattr(operator, "once_bytes", peak)
    free = available_bytes(operator.device)
    return not operator.team.largest(float64_bytes(size, peak) > free)


@dataclass(frozen=True)
class _Remade:
    """The operator of a copy, and the lowest precision in its first passes, here."""

    operator: Any
    lowest: float


def _remade(
    source: Any,
    change: Callable[[Any], Any],
    split: tuple[int, int] | None,
    perturb: Callable[[nn.Module], None] | None = None,
) -> _Remade | None:
    """Make the operator of changed inputs; None where that fails on some rank.

    Args:
        source: The operator.
        change: Returns a copy of the model, a batch or a loss.
        split: Most samples of a batch and bytes of graphs, if products are split.
        perturb: Changes the copy of the model.
    """
    team, items, remade = source.team, source.items, None
    samples, room = split or (None, None)
    try:
        with team.reporting_errors():
            model = _changed_model(source.model, change, team)
            if perturb is not None:
                perturb(model)
            # A loader's pair may be one that is refused if given directly.
            listed = isinstance(items[0], list) and are_two_alike(items[0])
            alone = len(items) == 1 and not listed and split is None
            batches = _ChangedBatches(items, change, samples)
            batches = change(items[0]) if alone else batches
            peak = _peak(source, model, split) if perturb is None else None
            make = source.remaking(model, batches, change(source.loss), room, peak)
            with LowestPrecision() as seen:
                operator = make()
            operator.checked = True  # if the original was checked
            remade = _Remade(operator, seen.eps)
    except DistributedError:  # a lost rank says nothing about the inputs
        raise
    except Exception:
        remade = None
    return None if team.largest(remade is None) else remade


def _peak(source: Any, model: nn.Module, split: object) -> int | None:
    """Return the memory of the copy's passes, from that of the original's.

    None where other people's derivatives are in the graph: a forecast builds one, so
    that their precision is seen too.
    """
    if not getattr(source, "plain", False):
        return None
    peak = source.forecast_bytes if split is None else source.once_bytes
    width = next(model.parameters()).dtype.itemsize
    return peak and peak * width // source.torch_dtype.itemsize


def _changed_model(model: nn.Module, change: Callable[[Any], Any], team: Team) -> Any:
    """Change the model on all ranks or on none.

    Otherwise ranks that succeed would wait for ranks that fail.
    """
    result, why = None, None
    try:
        result = change(model)
    except (TheodoliteError, RuntimeError, TypeError, ValueError) as error:
        why = error
    if team.largest(why is not None):
        raise why or MeasurementError("the model of another rank has no copy")
    return result


class _ChangedBatches:
    """Batches that are changed one at a time, as they are read, and may be cut."""

    def __init__(
        self,
        items: Sequence[Any],
        change: Callable[[Any], Any],
        samples: int | None = None,
    ) -> None:
        self._items, self._change, self._samples = items, change, samples

    def __iter__(self) -> Iterator[Any]:
        most = self._samples
        for item in map(self._change, self._items):
            yield from [item] if most is None else split_batch(item, most)


def _copied(given: Any) -> Any:
    if isinstance(given, nn.Module):
        with Exclusive():
            return copy.deepcopy(given)
    return given


def _in_float64(given: Any) -> Any:
    if isinstance(given, nn.Module):
        return _copied(given).double()
    if callable(given) or given is None:
        return given
    if isinstance(given, Mapping) and not isinstance(given, dict):
        return type(given)({key: _in_float64(value) for key, value in given.items()})  # pyright: ignore[reportCallIssue]
    return tree_map(_double, given)


def _double(leaf: Any) -> Any:
    real = isinstance(leaf, Tensor) and leaf.is_floating_point()
    return leaf.double() if real else leaf


def _perturb(model: nn.Module, eps: float, seed: int) -> None:
    """Round all weights and layer outputs randomly up or down."""
    with torch.no_grad():
        for place, parameter in enumerate(model.parameters(), seed):
            if parameter.is_floating_point():
                moved = parameter.double() * _factors(parameter, eps, place)
                parameter.copy_(moved)
    for place, module in enumerate(model.modules(), seed):
        if not any(True for _ in module.children()):
            module.register_forward_hook(_rounding(eps, place))


def _rounding(eps: float, place: int) -> Callable[[nn.Module, Any, Any], Any]:
    def rounded(_: nn.Module, args: Any, outputs: Any) -> Any:
        def each(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or not leaf.is_floating_point():
                return leaf
            return leaf * _factors(leaf, eps, place).to(leaf.dtype)

        return tree_map(each, outputs)

    return rounded


def _factors(like: Tensor, eps: float, place: int) -> Tensor:
    """Return 1 ± eps in the shape of a tensor, the same every time.

    For many, a GPU draws them itself, which is fast.
    """
    there = like.device.type == "cuda" and like.numel() >= _DRAWN_ON_GPU
    generator = torch.Generator(like.device if there else "cpu").manual_seed(place)
    drawn = torch.randint(
        0, 2, like.shape, generator=generator, device=generator.device
    )
    return 1 + eps * (2.0 * drawn.to(like.device, torch.float64) - 1.0)
