"""One model, its data and its loss: the input of operators and instruments."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from typing import Any, TypedDict, TypeVar, get_args

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode

from ..differentiate.derivatives import Parts
from ..differentiate.model_backward import MET
from ..distributed.processes import Team, as_team
from ..model.function_model import as_module, own_value
from ..model.losses import as_loss
from ..model.objective import (
    Batch,
    Divisor,
    Loss,
    Outputs,
    Reduction,
    Weights,
    check_weights,
    evaluate,
    judged,
    pair_of,
    reduction_of,
    returned_loss,
    scalar_value,
)
from ..model.process_state import Randomness
from ..model.reachable_state import chosen_parameters, norm_layers
from ..norms.normalisation import norm_mode_of
from .batches import Batches, check_micro_batch
from .grouping import Chunk

F = TypeVar("F", bound=Callable[..., Any])
OutputLoss = Callable[[Tensor, Batch], Tensor]


# A module, or a function and the tensors that it takes first.
Model = nn.Module | tuple[Callable[..., Any], Mapping[str, Tensor]]


class _Passes(TypedDict, total=False):
    norm_mode: NormMode | str | None
    params: Sequence[str] | None
    outputs: Outputs | None
    micro_batch: int | None
    graph_bytes: int | None
    pass_bytes: int | None
    randomness: Randomness
    max_batches: int | None
    team: Team | None


class PassSettings(_Passes, total=False):
    """Settings of :class:`Problem` that need no loss."""

    seed: int


class LossSettings(_Passes, total=False):
    """Settings of :class:`Problem` without the seed, which instruments take too."""

    loss: Loss | None
    output_loss: OutputLoss | None
    reduction: Reduction | None
    weights: Weights | None
    replay: bool


class ProblemSettings(LossSettings, total=False):
    """Settings of :class:`Problem`."""

    seed: int


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, its data, its loss, and how passes over the data are made.

    Operators and instruments take one in place of model and data, and
    ``dataclasses.replace`` makes others of it. Only the arguments are checked here: no
    data is read and the model does not run.

    Args:
        model: Any module, never changed; or a pair (function, params), where
            ``function(params, inputs)`` takes a dict of tensors. Without data and loss
            ``function(params)`` is the scalar to differentiate.
        batches: A pair (inputs, targets) or a mapping, or a list or DataLoader of them.
        loss: A torch loss, a function of outputs and targets, or of model and batch.
            Left out, the model returns it: the batch is a mapping of keyword arguments
            and the output has ``loss``, as in models of Hugging Face.
        norm_mode: Statistics that normalisation layers use: ``batch``, ``full``,
            ``frozen``, ``eval`` or ``as_is``. Left out, it is ``as_is``, and must be
            given where a batch norm is in train mode.
        params: Names of parameters; all that require a gradient by default.
        outputs: ``outputs(model, batch) -> tensor``; the model's outputs by default.
        output_loss: ``output_loss(outputs, batch) -> scalar``, which with ``outputs``
            takes the place of ``loss``.
        reduction: How a function combines samples, ``mean`` by default: means of
            several batches are weighted by their samples, or by their targets that
            are not -100 where the loss is the mean over these, and sums are added.
        weights: ``weights(batch)`` gives the divisor of a custom mean loss, such as how
            many targets count: one number, or one per sample.
        micro_batch: Most samples per pass; saves memory, changes nothing else.
        graph_bytes: Memory limit of graphs; most of the free memory by default.
        pass_bytes: Peak memory of the largest pass, if it is known; forecast from
            passes of a few samples by default.
        seed: Seed of the model's random numbers.
        randomness: ``fixed`` allows dropout, with masks fixed by the seed.
        max_batches: Most batches to use, from the first.
        team: Processes that hold the other batches.
        replay: Let a ``Hessian`` record the product of each batch as a CUDA graph and
            replay it for every vector, where graphs are kept on a CUDA device; else a
            warning says why not. Other operators leave it aside.

    Example:
        >>> import torch
        >>> from theodolite.instruments import Hessian, trace
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
        >>> layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        >>> problem = Problem(layer, (x, x[:, :1]), loss=nn.MSELoss())
        >>> trace(problem).trace, Hessian(problem).shape
        (5.0, (2, 2))
    """

    model: Any
    batches: Batches = None
    _: KW_ONLY
    loss: Loss | None = None
    norm_mode: NormMode | str | None = None
    params: Sequence[str] | None = None
    outputs: Outputs | None = None
    output_loss: OutputLoss | None = None
    reduction: Reduction | None = None
    weights: Weights | None = None
    micro_batch: int | None = None
    graph_bytes: int | None = None
    pass_bytes: int | None = None
    seed: int = 0
    randomness: Randomness = "refuse"
    max_batches: int | None = None
    team: Team | None = None
    replay: bool = False

    def __post_init__(self) -> None:
        given = as_team(self.team)
        object.__setattr__(self, "team", given)
        with given.reporting_errors():
            self._take_function()
            if not isinstance(self.loss, nn.Module | None):
                object.__setattr__(self, "loss", as_loss(self.loss))
            check_weights(self.weights, reduction_of(self.criterion, self.reduction))
            if self.micro_batch is not None:
                check_micro_batch(self.micro_batch)
            _ = self.mode

    def _take_function(self) -> None:
        """Turn a pair (function, params) into a module, with its own value as loss."""
        if isinstance(self.model, nn.Module):
            return
        object.__setattr__(self, "model", as_module(self.model))
        if self.batches is None and self.loss is None and self.output_loss is None:
            object.__setattr__(self, "loss", own_value)
            object.__setattr__(self, "batches", {})

    @property
    def mode(self) -> NormMode:
        """The norm mode; ``as_is`` where none was given and none is needed."""
        if self.norm_mode is None and norm_layers(self.model):
            return norm_mode_of(self.model, None)
        return NormMode.AS_IS if self.norm_mode is None else NormMode(self.norm_mode)

    @property
    def criterion(self) -> Any:
        """The loss that combines samples: as given, of outputs, or the model's own."""
        given = self.output_loss if self.loss is None else self.loss
        return returned_loss if given is None else given

    def parameters(self) -> dict[str, nn.Parameter]:
        """Return the parameters by name: all that are trained, or those of params."""
        return chosen_parameters(self.model, self.params)

    def measured_loss(self) -> Callable[[nn.Module, Batch], Tensor]:
        """Return a function of model and batch that gives the loss as a scalar."""
        # A closure of the loss alone: what a callable reaches is saved and restored.
        loss, outputs, output_loss = self.criterion, self.outputs, self.output_loss
        if outputs is not None and loss is output_loss:
            return lambda model, batch: scalar_value(loss(outputs(model, batch), batch))
        if outputs is not None and isinstance(loss, nn.Module):
            return lambda model, batch: scalar_value(
                judged(loss, outputs(model, batch), pair_of(batch)[1])
            )
        return partial(evaluate, loss=loss)

    def divisor(self) -> Divisor:
        """Return the divisor of a batch's mean."""
        stated = reduction_of(self.criterion, self.reduction)
        return Divisor(self.criterion, stated, self.weights)


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """The quantity that an operator differentiates, and how it computes a product.

    Attributes:
        kind: Short name of the quantity.
        measure: Runs the model on a batch; returns the value to differentiate.
        build: Builds the graph for products, from that value and the leaves.
        walk: Multiplies tangents by such a graph of a chunk.
        divisor: How the loss combines samples, None where there is no loss.
        scalar: Whether a loss is measured, or outputs.
        checked: Returns a value, or raises if it is a loss that cannot be used.
        callables: Further code that runs in sessions, such as a loss of outputs.
    """

    kind: str
    measure: Callable[[nn.Module, Batch], Tensor]
    build: Callable[[Tensor, Sequence[Tensor]], Any]
    walk: Callable[[Any, Chunk, Parts], Parts]
    divisor: Divisor | None = None
    scalar: bool = False
    checked: Callable[[Tensor], Tensor] = lambda value: value
    callables: Sequence[Callable[..., object]] = ()

    @property
    def code(self) -> list[Callable[..., object]]:
        """All code that runs in sessions beside the model."""
        return [self.measure, *self.callables]

    @property
    def mass(self) -> Divisor | None:
        """Weight of a batch in a mean over all, None for a sum."""
        return None if self.divisor is None or self.divisor.sums else self.divisor


class Measure:
    """Runs a model without a graph, even if it differentiates in its forward pass.

    Args:
        run: Returns the measured value.

    Attributes:
        differentiates: Whether the model ran a backward pass when it was tried out.
    """

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self.differentiates = False

    def __call__(self, *given: Any) -> Any:
        """Run the model; return a value without a graph if grad mode is off."""
        if torch.is_grad_enabled() or not self.differentiates:
            return self._run(*given)
        with torch.enable_grad():
            value = self._run(*given)
        return value.detach() if isinstance(value, Tensor) else value

    def function(self) -> Callable[..., Any]:
        """Return the function that runs the model in the present grad mode."""
        plain = torch.is_grad_enabled() or not self.differentiates
        return self._run if plain else self

    @contextmanager
    def trying_out(self) -> Iterator[Callable[..., Any]]:
        """Yield the function that runs the model; record whether it differentiates.

        If its own backward pass fails without a graph, that is recorded, and the next
        run has a graph.
        """
        before = MET[0]
        try:
            yield self.function()
        finally:
            self.differentiates = MET[0] > before


def problem_of(
    model: Model | Problem, batches: Batches | None, settings: Mapping[str, Any]
) -> Problem:
    """Return the problem of a model and its data, or a given one with new settings."""
    if not isinstance(model, Problem):
        return Problem(model, batches, **settings)
    if batches is not None:
        raise MeasurementError(
            "a Problem came with batches, and holds some already: leave them out, or "
            "pass dataclasses.replace(problem, batches=…)"
        )
    return replace(model, **settings) if settings else model


def given_in(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not None; others are left to a given problem."""
    return {name: value for name, value in settings.items() if value is not None}


def spelled_out(function: Callable[..., Any], **more: Any) -> inspect.Signature:
    """Return a signature with one parameter for each of ``**settings``.

    Args:
        function: Its last parameter is ``**settings: Unpack[...]`` of a TypedDict.
        more: Defaults of settings that :class:`Problem` does not have.
    """
    signature = inspect.signature(function)
    *own, last = signature.parameters.values()
    (kind,) = get_args(last.annotation)
    hints = kind.__annotations__
    known = {field.name: field.default for field in fields(Problem)} | more
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=hints[name],
        )
        for name, default in known.items()
        if name in hints
    ]
    return signature.replace(parameters=[*own, *added])


def refuse_unknown(function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
    """Refuse settings that a function or class under :func:`with_settings` lacks."""
    for name in settings:
        if name not in inspect.signature(function).parameters:
            raise TypeError(
                f"{function.__name__}: got an unexpected keyword argument {name!r}"
            )


def bound(
    name: str, signature: inspect.Signature, /, *args: Any, **kwargs: Any
) -> dict[str, Any]:
    """Return the arguments of a call by name, or raise if they do not fit."""
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def with_settings(function: F) -> F:
    """Show each of ``**settings`` to ``help`` and TAB; :func:`refuse_unknown` checks.

    Type checkers read the TypedDict of ``**settings`` instead.
    """
    vars(function)["__signature__"] = spelled_out(function)
    return function
