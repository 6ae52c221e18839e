"""Instruments of operators that take models too, and the memory they will take."""

import inspect
import reprlib
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar, Unpack, get_args

from torch import nn

from theodolite.core import ConfigError, Reading, unknown_name

from ..model.process_state import measuring
from ..operators.loss_hessian import Hessian
from ..operators.operator import Operator
from ..operators.parameter_operator import ParameterOperator
from ..passes.batches import Batches
from ..passes.forecast import as_bytes
from ..passes.problem import LossSettings, Problem, bound, problem_of, spelled_out
from ..passes.progress_line import show_progress
from ..solvers.basis_storage import MemoryForecast, check_placement, forecast_of
from ..solvers.checks import check_count, check_level
from ..solvers.eigenpairs import Ends, least_basis

Curvature = Callable[..., ParameterOperator]
# What instruments measure.
Subject = nn.Module | Problem | Operator
P = ParamSpec("P")
R = TypeVar("R")


class CurvatureSettings(LossSettings, total=False):
    """Settings of :class:`Problem`, and the operator that is made from it."""

    operator: Curvature


def checked_curvature(operator: Any) -> Curvature:
    """Return what makes an operator of a :class:`Problem`, or refuse it."""
    kind, fits = isinstance(operator, type), callable(operator)
    if isinstance(operator, type):
        fits = issubclass(operator, ParameterOperator) and operator.symmetric
    if fits:
        return operator
    came = f"the class {operator.__name__}" if kind else reprlib.repr(operator)
    raise ConfigError(
        f"operator is {came}: pass the class Hessian, GaussNewton, Fisher or "
        "EmpiricalFisher, of which one is made here"
    )


def named(reading: R, operator: ParameterOperator) -> R:
    """Return a reading that names its matrix, if that is not the Hessian."""
    if operator.title == Hessian.title or not isinstance(reading, Reading):
        return reading
    return replace(reading, method=f"{operator.title}, {reading.method}")


def refuse_settings(name: str, *given: object) -> None:
    """Refuse data and settings beside an operator, which was made with its own."""
    if any(one is not None and one != {} for one in given):
        raise ConfigError(
            f"{name} of an operator takes no batches and no settings of a Problem: "
            "pass them where the operator is made"
        )


def problem_for(
    model: Any, batches: Batches | None, settings: Any, seed: int | None
) -> Problem:
    """Return the problem of a module with an instrument's seed, or a given problem."""
    if seed is not None and not isinstance(model, Problem):
        settings = {**settings, "seed": seed}
    return problem_of(model, batches, settings)


def _checked(name: str, value: Any) -> Any:
    """Return a setting, after a check if all instruments mean the same by it."""
    if name == "basis_bytes":
        return as_bytes(name, value)
    if name == "basis":
        check_placement(value)
    if name == "level":
        check_level(value)
    return value


def measured(solve: Callable[P, R]) -> Callable[P, R]:
    """Make an instrument of a function of an operator.

    The function gets an operator in place of ``model`` and never sees ``batches`` and
    ``settings``: of these the operator is made, measured, and its graphs are freed. An
    operator that was given is passed on as it is. ``seed`` goes to the function and,
    for a module, to the problem; left out, it is that of a :class:`Problem` that was
    given. A reading of any matrix but the Hessian says so in its method.
    """
    signature = spelled_out(solve, operator=Hessian)
    _, _, *taken, _ = inspect.signature(solve).parameters

    @wraps(solve)
    def measure(*args: P.args, **kwargs: P.kwargs) -> R:
        given = bound(solve.__name__, signature, *args, **kwargs)
        model, batches = given.pop("model"), given.pop("batches", None)
        own = {name: _checked(name, given.pop(name)) for name in taken if name in given}
        run: Callable[..., R] = solve
        with measuring(), show_progress(solve.__name__):
            if isinstance(model, Operator):
                refuse_settings(solve.__name__, batches, given)
                return run(model, **own)
            make = checked_curvature(given.pop("operator", Hessian))
            problem = problem_for(model, batches, given, own.get("seed"))
            own.setdefault("seed", problem.seed)
            with make(problem) as operator:
                return named(run(operator, **own), operator)

    vars(measure)["__signature__"] = signature
    return measure


@measured
def memory_forecast(
    model: Subject,
    batches: Batches | None = None,
    *,
    k: int = 1,
    ends: Ends = "both",
    vectors: int | None = None,
    seed: int = 0,
    **settings: Unpack[CurvatureSettings],
) -> MemoryForecast:
    """Say what measuring a model's curvature will take, and where its basis fits.

    The graph's share is extrapolated from that of a few samples, which is built; no
    product is made. ``print`` says all of it in one sentence.

    Args:
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data.
        k: How many eigenvalues at each end are sought.
        ends: At which ends.
        vectors: Vectors that are kept: the fewest of a search for ``k`` by default;
            ``steps + 1`` for a density, up to a third of the products for a trace and
            two thirds for a diagonal, where a trace can do with none.
        seed: Seed of the model's random numbers.
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``, and
            ``operator``: ``Hessian``, ``GaussNewton``, ``Fisher`` or
            ``EmpiricalFisher``.

    Example:
        >>> import torch
        >>> layer = nn.Linear(100, 10)
        >>> batch = torch.randn(4, 100), torch.randn(4, 10)
        >>> forecast = memory_forecast(layer, batch, loss=nn.MSELoss())
        >>> forecast.parameters, forecast.basis, forecast.placement
        (1010, 60600, 'device')
    """
    assert isinstance(model, Operator)  # made by the decorator
    check_count("k", k)
    if ends not in get_args(Ends):
        raise unknown_name("end", ends, get_args(Ends))
    if vectors is None:
        sides = 2 if ends == "both" else 1
        # The basis, its pending vector, the known pairs, and as many while
        # it is tested that none was missed.
        size = model.shape[1]
        vectors = min(size, least_basis(k, sides)) + 1 + 2 * min(size, sides * k)
    check_count("vectors", vectors)
    return forecast_of(model, vectors=vectors)
