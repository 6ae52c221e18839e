"""The largest step along a line for which a decrease of the loss is guaranteed."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core import (
    Dims,
    MeasurementError,
    Reading,
    Scalar,
    Status,
    Stopwatch,
    headline,
    metadata_line,
    quantity_line,
)
from theodolite.instruments import (
    Problem,
    extreme_eigenvalues,
    measuring,
    norm_layers_as_is,
    preserve,
)

from .enclosure import Parts, Prepared, prepare
from .search import Search

_MEASURED = (
    "sharpness sharpness_error stable_step ratio bend_bound bend_found looseness"
).split()


@dataclass(frozen=True, kw_only=True, eq=False)
class GuaranteedStep(Reading):
    r"""Steps along a direction that lower the loss for certain.

    All are multiples of the direction: along the negative gradient, learning rates.
    The bounds hold in exact arithmetic; rounding of their evaluation is in them.

    Attributes:
        step: Each step above 0 and up to this one lowers the loss.
        best_step: The one of them with the largest guaranteed decrease.
        decrease: That decrease: the loss falls by at least so much. All are 0
            where the loss does not fall at first, or, with status ROUNDING, where no
            step was found, as in networks so deep that rounding hides the fall.
        slope: Derivative of the loss along the direction, at 0.
        loss: The loss at these weights.
        loss_error: Its rounding.
        sharpness: Largest eigenvalue of the Hessian; this and what follows is NaN if
            it was not measured.
        sharpness_error: Its error.
        stable_step: Twice the descent over the sharpness, $2/\lambda_{max}$ along the
            negative gradient: the largest step of a parabola as sharp as that in all
            directions.
        ratio: ``step`` over ``stable_step``.
        bend_bound: On the segment up to ``best_step``, the loss is at most so far from
            its tangent.
        bend_found: The largest distance from the tangent at some points of it, a lower
            bound of the truth.
        looseness: ``bend_bound`` over ``bend_found``.
        layer_looseness: The same for each layer's output and its chord, as a norm, on
            the last stretch that was bounded; NaN for layers that are straight.
        names: The layers' names in the model.
        evaluations: How many stretches were bounded.
    """

    step: Scalar
    best_step: Scalar
    decrease: Scalar
    slope: Scalar
    loss: Scalar
    loss_error: Scalar
    sharpness: Scalar
    sharpness_error: Scalar
    stable_step: Scalar
    ratio: Scalar
    bend_bound: Scalar
    bend_found: Scalar
    looseness: Scalar
    layer_looseness: Annotated[np.ndarray, Dims("layer")]
    names: tuple[str, ...]
    evaluations: int

    def coordinates(self) -> dict[str, list[Any]]:
        """Return the layers' names."""
        return {"layer": list(self.names)}

    def summary_lines(self) -> list[str]:
        """Return the steps, and the layer whose bound is loosest."""
        shown = "step best_step decrease stable_step ratio looseness"
        lines = [f"  {name:<12}  {quantity_line(self, name)}" for name in shown.split()]
        if np.isfinite(self.layer_looseness).any():
            place = int(np.nanargmax(self.layer_looseness))
            size = self.layer_looseness[place]
            lines.append(f"  loosest layer: {self.names[place]}, {size:.3g} times")
        return [headline(self), *lines, metadata_line(self)]


@measuring()
def guaranteed_step(
    problem: Problem,
    *,
    direction: Tensor | None = None,
    evaluations: int = 5,
    measure: bool = True,
) -> GuaranteedStep:
    r"""Return the largest step for which a decrease of the loss is guaranteed.

    The loss is computed at some points of the segment. Between two of them it is close
    to its chord, and how close is bounded operator by operator, starting at the
    activations that the data has there; see ``tubes``. Only rectifiers and max pools
    whose kink is within reach are not straight.

    Args:
        problem: A model, one batch and a loss; not changed. Parameters that its
            ``params`` leave out stay where they are.
        direction: All entries of the parameters that move, one after the other, in the
            model's order; the negative gradient by default.
        evaluations: How many stretches are bounded, one after the other, at some 7
            gradients each. More of them give a longer step.
        measure: Whether to measure the sharpness, and how loose the bounds are.

    Raises:
        MeasurementError: A layer has no known bounds; the message names it.

    Example:
        >>> from torch import nn
        >>> _ = torch.manual_seed(0)
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> batch = torch.randn(16, 4), torch.arange(16) % 3
        >>> problem = Problem(model, batch, loss=nn.CrossEntropyLoss())
        >>> guarantee = guaranteed_step(problem)
        >>> guarantee.step > 0, guarantee.decrease > 0, guarantee.looseness >= 1
        (True, True, True)
    """
    watch = Stopwatch()
    if evaluations < 1:
        raise MeasurementError(f"evaluations is {evaluations}: pass at least 1")
    ready = prepare(problem)
    measured: dict[str, Any] = dict.fromkeys(_MEASURED, math.nan)
    measured |= {"layer_looseness": np.empty(0), "names": ()}
    with preserve(ready.model):
        along, slope = _parts(ready, direction), None
        if direction is None:
            slope = -_square(along)
        search = Search(ready, along, slope)
        search.run(evaluations)
        search.check()
        if measure and search.step:
            measured |= _looseness(ready, along, search)
    step, (best_step, decrease) = search.step, search.best
    if measure:
        top = extreme_eigenvalues(problem, ends="largest", tol=1e-3, max_matvecs=60)
        sharpness, error = float(top.eigenvalues[0]), float(top.errors[0])
        measured |= {"sharpness": sharpness, "sharpness_error": error}
        if sharpness > 0 and _square(along) and search.slope < 0:
            stable = -2 * search.slope / (sharpness * _square(along))
            measured |= {"stable_step": stable, "ratio": step / stable}
    known = step > 0 or not search.slope < 0
    return GuaranteedStep(
        step=step,
        best_step=best_step,
        decrease=decrease,
        slope=search.slope,
        loss=search.loss,
        loss_error=search.error,
        **measured,
        evaluations=search.count,
        status=Status.EXACT if known else Status.ROUNDING,
        norm_mode=problem.mode,
        norm_layers=norm_layers_as_is(problem.model, problem.mode),
        cost=watch.read(passes=search.count),
        method="distances from chords between points of the segment",
    )


def _square(parts: Parts) -> float:
    return sum(float(part.square().sum()) for part in parts)


def _parts(ready: Prepared, direction: Tensor | None) -> Parts:
    if direction is None:
        return [-part for part in ready.gradient()]
    sizes = [one.numel() for one in ready.parameters]
    if direction.ndim != 1 or direction.numel() != sum(sizes):
        raise MeasurementError(
            f"a direction of shape {tuple(direction.shape)} came for {sum(sizes)} "
            "parameters: pass one number for each, such as torch.cat of the flattened "
            "parts"
        )
    if not torch.isfinite(direction).all():
        raise MeasurementError("the direction has entries that are not finite")
    parts = direction.detach().double().cpu().split(sizes)
    pairs = zip(parts, ready.parameters, strict=True)
    return [part.reshape(one.shape) for part, one in pairs]


def _looseness(ready: Prepared, along: Parts, search: Search) -> dict[str, Any]:
    """Return how far bounds on the segment are above what is found there."""
    slope, layers = search.slope, search.layers
    path = [one for one in search.path if one.stop <= search.best[0]]
    bound = max(one.bend(slope) for one in path)
    found, outputs = 0.0, {}
    for one in path:
        middle = (one.start + one.stop) / 2
        loss, outputs = ready.run(along, middle)
        lines = slope * middle, slope * one.stop
        found = max(found, abs(loss - search.loss - lines[0]))
        found = max(found, abs(one.ends[1] - lines[1]))
    ratios = []
    for name, one in layers.items():
        away = float((outputs[name] - (one.a + one.b) / 2).norm())
        bent = away > 100 * (one.slip + 1e-15 * one.size)
        ratios.append(one.gap / away if bent else math.nan)
    return {
        "bend_bound": bound,
        "bend_found": found,
        "looseness": bound / found if found > 0 else math.inf,
        "layer_looseness": np.array(ratios),
        "names": tuple(layers),
    }
