"""Instruments of models from functions of operators, and the memory they will take."""

import inspect
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar, Unpack, get_args

from torch import nn

from theodolite.core import ConfigError, NormMode, Reading, unknown_name

from ..model.objective import Loss
from ..model.process_state import measuring
from ..operators.loss_hessian import Hessian, HessianOptions
from ..operators.operator import Operator
from ..operators.parameter_operator import ParameterOperator
from ..passes.batches import Batches
from ..passes.progress_line import show_progress
from ..solvers.basis_storage import MemoryForecast, forecast_of
from ..solvers.checks import check_count
from ..solvers.eigenpairs import Ends, least_basis

Curvature = Callable[..., ParameterOperator]
P = ParamSpec("P")
R = TypeVar("R")


def checked_curvature(operator: Any) -> Curvature:
    """Return what makes an operator of a model, its data and its loss, or refuse it."""
    if _takes_loss(operator) if isinstance(operator, type) else callable(operator):
        return operator
    kind = isinstance(operator, type)
    came = f"the class {operator.__name__}" if kind else reprlib.repr(operator)
    raise ConfigError(
        f"operator is {came}: pass the class Hessian, GaussNewton, Fisher or "
        "EmpiricalFisher, of which one is made here"
    )


def _takes_loss(kind: type) -> bool:
    """Whether a class is of operators that a loss goes into."""
    taken = inspect.signature(kind.__init__).parameters.values()
    return issubclass(kind, ParameterOperator) and any(
        one.name == "loss" or one.kind is one.VAR_KEYWORD for one in taken
    )


def told(reading: R, operator: ParameterOperator) -> R:
    """Return a reading that names its matrix, if that is not the Hessian."""
    if operator.title == Hessian.title or not isinstance(reading, Reading):
        return reading
    return replace(reading, method=f"{operator.title}, {reading.method}")


def measured_by(
    solve: Callable[..., R], *, operator: Curvature = Hessian
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give an instrument its body: make the operator, solve, let its graphs go.

    The instrument that is decorated holds the signature and the words, for people and
    for type checkers, and nothing else. Arguments that ``solve`` takes go there, all
    others make the operator, and ``seed`` goes to both. An instrument that takes
    ``operator`` makes that one; a reading of any but the Hessian says so in its method.

    Args:
        solve: Takes an operator and keyword settings; returns the reading.
        operator: What is made of the model, its data and what else is given.
    """
    _, *settings = inspect.signature(solve).parameters

    def decorate(instrument: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(instrument)
        own = [name for name in settings if name in signature.parameters]

        @wraps(instrument)
        def measure(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                call = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{instrument.__name__}: {error}") from None
            call.apply_defaults()
            given: dict[str, Any] = dict(call.arguments)
            options = given.pop("options", {})
            chosen = {name: given.pop(name) for name in own}
            make = checked_curvature(given.pop("operator", operator))
            with (
                measuring(),
                show_progress(instrument.__name__),
                make(**given, **options, seed=chosen["seed"]) as made,
            ):
                return told(solve(made, **chosen), made)

        return measure

    return decorate


def memory_of(
    operator: Operator,
    *,
    k: int = 1,
    ends: Ends = "both",
    vectors: int | None = None,
    seed: int = 0,
) -> MemoryForecast:
    """Return what a search on an operator will take; nothing is multiplied.

    Example:
        >>> import torch
        >>> from theodolite.instruments import MatrixOperator
        >>> forecast = memory_of(MatrixOperator(torch.eye(1000), symmetric=True), k=2)
        >>> forecast.basis_vectors, forecast.basis, forecast.placement
        (23, 92000, 'device')
    """
    del seed  # nothing is drawn
    check_count("k", k)
    if ends not in get_args(Ends):
        raise unknown_name("end", ends, get_args(Ends))
    if vectors is None:
        sides = 2 if ends == "both" else 1
        # The basis, its pending vector, the known pairs, and as many while
        # it is tested that none was missed.
        size = operator.shape[1]
        vectors = min(size, least_basis(k, sides)) + 1 + 2 * min(size, sides * k)
    check_count("vectors", vectors)
    return forecast_of(operator, vectors=vectors)


@measured_by(memory_of)
def memory_forecast(
    model: nn.Module,
    batches: Batches,
    *,
    loss: Loss,
    norm_mode: NormMode | str,
    k: int = 1,
    ends: Ends = "both",
    vectors: int | None = None,
    params: Sequence[str] | None = None,
    seed: int = 0,
    operator: Curvature = Hessian,
    **options: Unpack[HessianOptions],
) -> MemoryForecast:
    """Say what measuring a model's curvature will take, and where its basis fits.

    The graph's share is extrapolated from that of a few samples, which is built; no
    product is made. ``print`` says all of it in one sentence.

    Args:
        model: Any module, where it will be measured.
        batches: A pair (inputs, targets) or a mapping, or a list or DataLoader of them.
        loss: A torch loss, a function of outputs and targets, or of model and batch.
        norm_mode: Statistics that normalisation layers use.
        k: How many eigenvalues at each end are sought.
        ends: At which ends.
        vectors: Vectors that are kept: the fewest of a search for ``k`` by default;
            ``steps + 1`` for a density, up to a third of the products for a trace and
            two thirds for a diagonal, where a trace can do with none.
        params: Names of parameters; all that require a gradient by default.
        seed: Seed of the model's random numbers.
        operator: ``Hessian``, ``GaussNewton``, ``Fisher`` or ``EmpiricalFisher``.
        options: Passed on to the operator, such as ``micro_batch``.

    Example:
        >>> import torch
        >>> layer = nn.Linear(100, 10)
        >>> batch = torch.randn(4, 100), torch.randn(4, 10)
        >>> given = {"loss": nn.MSELoss(), "norm_mode": "eval"}
        >>> forecast = memory_forecast(layer, batch, **given)
        >>> forecast.parameters, forecast.basis, forecast.placement
        (1010, 60600, 'device')
    """
    ...
