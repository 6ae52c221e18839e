"""Let instruments of operators take models too, check arguments, forecast memory."""

import inspect
import reprlib
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import (
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Unpack,
)

from theodolite.core import (
    ConfigError,
    MeasurementError,
    NormMode,
    Reading,
)

from ..model.process_state import measuring
from ..operators.loss_hessian import Hessian
from ..operators.operator import Operator
from ..operators.parameter_operator import ParameterOperator
from ..passes.batches import Batches
from ..passes.forecast import MemoryForecast, as_bytes, forecast_of
from ..passes.problem import (
    LossSettings,
    Model,
    Problem,
    bound,
    problem_of,
    spelled_out,
)
from ..solvers.eigenpairs import Ends, least_basis

Curvature = Callable[..., ParameterOperator]
# Accepted subjects of an instrument.
Subject = Model | Problem | Operator
P = ParamSpec("P")
R = TypeVar("R")


class CurvatureSettings(LossSettings, total=False):
    """Settings of :class:`Problem`, and the class of the operator made from it."""

    operator: Curvature


def checked_curvature(operator: Any) -> Curvature:
    """Return the class that makes an operator from a problem, or refuse it."""
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


def named(reading: R, operator: Operator) -> R:
    """Return the reading, with the name of its matrix if that is not the Hessian."""
    if operator.title in ("", Hessian.title) or not isinstance(reading, Reading):
        return reading
    return replace(reading, method=f"{operator.title}, {reading.method}")


def refuse_settings(name: str, *given: object) -> None:
    """Refuse data and settings next to an operator, which already has its own."""
    if any(one is not None and one != {} for one in given):
        raise ConfigError(
            f"{name} of an operator takes no batches and no settings of a Problem: "
            "pass them where the operator is made"
        )


def problem_for(
    model: Any, batches: Batches | None, settings: Any, seed: int | None
) -> Problem:
    """Return a given problem, or the problem of a module with an instrument's seed."""
    if seed is not None and not isinstance(model, Problem):
        settings = {**settings, "seed": seed}
    return problem_of(model, batches, settings)


def _checked(name: str, value: Any) -> Any:
    """Return a setting, checked if it means the same in all instruments."""
    if name == "basis_bytes":
        return as_bytes(name, value)
    if name == "level":
        check_level(value)
    return value


def measured(solve: Callable[P, R]) -> Callable[P, R]:
    """Turn a function of an operator into an instrument that takes models too.

    The function gets an operator in place of ``model`` and never sees ``batches`` and
    ``settings``: the operator is made from these, measured, and its graphs are freed. A
    given operator is passed on unchanged. ``seed`` goes to the function and, for a
    module, to the problem; by default it is that of a given :class:`Problem`. The
    method of a reading names the matrix, unless it is the Hessian.
    """
    signature = spelled_out(solve, operator=Hessian)
    _, _, *taken, _ = inspect.signature(solve).parameters

    @wraps(solve)
    def measure(*args: P.args, **kwargs: P.kwargs) -> R:
        given = bound(solve.__name__, signature, *args, **kwargs)
        model, batches = given.pop("model"), given.pop("batches", None)
        own = {name: _checked(name, given.pop(name)) for name in taken if name in given}
        run: Callable[..., R] = solve
        with measuring(solve.__name__):
            if isinstance(model, Operator):
                refuse_settings(solve.__name__, batches, given)
                return named(run(model, **own), model)
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
    """Return how much memory a model's curvature will take, and where its basis fits.

    The graph's memory is extrapolated from a graph of a few samples, which is built; no
    product is computed. ``print`` shows the forecast in one sentence.

    Args:
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data.
        k: Number of eigenvalues to find at each end.
        ends: Which ends of the spectrum.
        vectors: Vectors to keep: by default the fewest for a search for ``k``; ``steps
            + 1`` for a density, up to a third of the products for a trace and two
            thirds for a diagonal; a trace can do without any.
        seed: Seed of the model's random numbers.
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``, and
            ``operator``: ``Hessian``, ``GaussNewton``, ``Fisher`` or
            ``EmpiricalFisher``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> layer = nn.Linear(100, 10)
        >>> batch = torch.randn(4, 100), torch.randn(4, 10)
        >>> forecast = memory_forecast(layer, batch, loss=nn.MSELoss())
        >>> forecast.parameters, forecast.basis, forecast.placement
        (1010, 60600, 'device')
    """
    assert isinstance(model, Operator)  # made by the decorator
    check_count("k", k)
    if vectors is None:
        sides = 2 if ends == "both" else 1
        # The basis, its pending vector, the known pairs, and as many again for
        # the test that none was missed.
        size = model.shape[1]
        vectors = min(size, least_basis(k, sides)) + 1 + 2 * min(size, sides * k)
    check_count("vectors", vectors)
    return forecast_of(model, vectors=vectors)


def norms_of(operator: Operator) -> dict[str, Any]:
    """Return the norm mode for readings; a plain matrix counts as ``eval``."""
    return {
        "norm_mode": NormMode(getattr(operator, "norm_mode", NormMode.EVAL)),
        "norm_layers": getattr(operator, "norm_layers", {}),
    }


def symmetric(operator: Any) -> Operator:
    """Return an operator with a real spectrum, or refuse it."""
    if not operator.symmetric:
        raise MeasurementError(
            f"{operator.written()} of shape {operator.shape} is not symmetric: "
            "pass a Hessian, or say symmetric=True if it is"
        )
    if operator.inexact:
        raise MeasurementError(
            "products with an inverse are solutions up to a residual, which errors of "
            "readings leave out: measure the operator itself, whose eigenvalues are "
            "the reciprocals, or use dense()"
        )
    if not operator.shape[1]:
        raise MeasurementError(
            f"{type(operator).__name__} of shape {operator.shape} has no eigenvalues: "
            "choose parameters that hold numbers"
        )
    return operator


def check_count(name: str, value: int, least: int = 1) -> None:
    """Refuse a count that is not a whole number from ``least`` up."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is {value!r}: pass a whole number from {least} up")


def check_precision(tol: float | None) -> None:
    """Refuse a value that is not a precision for a sampling estimate."""
    if tol is not None and not tol > 0:
        raise ConfigError(f"tol is {tol!r}: pass a number above 0, as 0.1, or None")


def relative_error(error: float, value: float) -> float:
    """Return an error divided by the size of its value; infinite if that is 0."""
    if value:
        return error / abs(value)
    return float("inf") if error else 0.0


def check_level(level: float) -> None:
    """Refuse what is not a level of confidence."""
    if not 0 < level < 1:
        raise ConfigError(f"level is {level!r}: pass a number between 0 and 1, as 0.95")


Method = Literal["auto", "dense", "products"]


# Up to here all columns and `eigvalsh` take about a second, without sampling
# error; beyond, both grow with the square of the size or faster.
DENSE_UP_TO = 1000


def goes_dense(operator: Operator, method: Method, budget: int) -> bool:
    """Return whether to form the dense matrix: if requested, or if the budget allows.

    Args:
        operator: The operator; its matrix takes one product per column.
        method: The method that the caller chose.
        budget: Products that the caller allows.
    """
    small = operator.shape[1] <= min(DENSE_UP_TO, budget)
    return method == "dense" or (method == "auto" and small)
