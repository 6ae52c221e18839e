"""Make an instrument of the loss Hessian from a function of operators."""

import inspect
import reprlib
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from theodolite.core import ConfigError, Reading
from theodolite.instruments.operators.loss_hessian import Hessian
from theodolite.instruments.operators.parameter_operator import ParameterOperator
from theodolite.instruments.passes.announcing import announced

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
                announced(instrument.__name__),
                make(**given, **options, seed=chosen["seed"]) as found,
            ):
                return told(solve(found, **chosen), found)

        return measure

    return decorate
