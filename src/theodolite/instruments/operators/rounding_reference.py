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
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from theodolite.core import (
    DistributedError,
    Exclusive,
    MeasurementError,
    TheodoliteError,
)

from ..calls.listening import Listener
from ..distributed.processes import Team
from ..passes.batches import split_batch
from ..passes.forecast import available_bytes, float64_bytes
from .matrix_operator import Identity, MatrixOperator
from .operator import Operator


class LowestPrecision(Listener):
    """Record the lowest floating-point precision of operations that run inside.

    Attributes:
        eps: Relative spacing of that type, 0 before anything ran.
        paused: Whether operations are ignored now.
    """

    def __init__(self) -> None:
        self.eps, self.paused = 0.0, False
        self._token: Token[LowestPrecision | None] | None = None

    def __enter__(self) -> Self:
        self._token = _active.set(self)
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        if self._token is not None:
            _active.reset(self._token)

    def apart(self, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Ignore operations of a change: copies start from the original types."""

        def changed(given: Any) -> Any:
            with self._pause():
                return change(given)

        return changed

    @contextmanager
    def _pause(self) -> Iterator[None]:
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def on_operator(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator, and record the precision of its results."""
        result = operator(*args, **kwargs)
        for leaf in [] if self.paused else tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                if leaf.numel() > 1:
                    self.eps = max(self.eps, torch.finfo(leaf.dtype).eps)
        return result


_active: ContextVar[LowestPrecision | None] = ContextVar("watching", default=None)


def precision_ignored() -> AbstractContextManager[None]:
    """Ignore operations that run inside."""
    mode = _active.get()
    return nullcontext() if mode is None else mode._pause()


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
    make = operator.remade_once if once else operator.remade
    team = _team_of(operator)
    drawn = getattr(operator, "randomness", "refuse") == "fixed"
    changes = [_copied]
    if operator.torch_dtype != torch.float64 and not drawn:  # masks depend on the type
        changes = [_in_float64, _copied] if _has_room(operator, once) else [_copied]
    for change in changes:
        with LowestPrecision() as seen:
            remade = _remade(make, seen.apart(change), team)
        if remade is None:
            continue
        fine, lowest = torch.finfo(torch.float64).eps, team.largest(seen.eps)
        if remade.torch_dtype == torch.float64 and lowest <= fine:
            if operator.torch_dtype != torch.float64:
                return RoundingReference(remade, 1.0, finer=True)
        eps = max(lowest, torch.finfo(remade.torch_dtype).eps)
        perturbed = _remade(make, _perturbing(change, eps, seed), team)
        return (
            None
            if perturbed is None
            else RoundingReference(perturbed, _PERTURBED, finer=False)
        )
    return None


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


def in_float64(operator: Operator) -> Operator | None:
    """Return the operator of a copy in float64, or None where none can be made."""
    if not _has_room(operator, once=False):
        return None
    return _remade(operator.remade, _in_float64, _team_of(operator))


def _has_room(operator: Operator, once: bool) -> bool:
    """Whether products of a copy in float64 fit in free memory, on all ranks."""
    size, peak = operator.shape[1], getattr(operator, "forecast_bytes", None)
    if once:
        peak = getattr(operator, "once_bytes", peak)
    free = available_bytes(operator.device)
    return not _team_of(operator).largest(float64_bytes(size, peak) > free)


def _team_of(operator: Operator) -> Team:
    """Return the processes that multiply together."""
    return getattr(operator, "team", None) or Team()


def _remade(
    make: Callable[[Callable[[Any], Any]], Operator | None],
    change: Callable[[Any], Any],
    team: Team,
) -> Operator | None:
    """Make the operator of changed inputs; None where they fail on some rank."""
    try:
        with team.reporting_errors():
            operator = make(_on_all_ranks(change, team))
    except DistributedError:  # a lost rank says nothing about the inputs
        raise
    except Exception:
        operator = None
    return None if team.largest(operator is None) else operator


def _on_all_ranks(change: Callable[[Any], Any], team: Team) -> Callable[[Any], Any]:
    """Change the model, which comes first, on all ranks or on none.

    Otherwise ranks that succeed would wait for ranks that fail.
    """
    agreed = not team.several

    def changed(given: Any) -> Any:
        nonlocal agreed
        if agreed:
            return change(given)
        agreed, result, why = True, None, None
        try:
            result = change(given)
        except (TheodoliteError, RuntimeError, TypeError, ValueError) as error:
            why = error
        if team.largest(why is not None):
            raise why or MeasurementError("the model of another rank has no copy")
        return result

    return changed


class ChangedBatches:
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


def _perturbing(
    change: Callable[[Any], Any], eps: float, seed: int
) -> Callable[[Any], Any]:
    """Also perturb the first module that is changed, which is the model."""
    models: list[nn.Module] = []

    def changed(given: Any) -> Any:
        result = change(given)
        if isinstance(result, nn.Module) and not models:
            models.append(result)
            _perturb(result, eps, seed)
        return result

    return changed


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
