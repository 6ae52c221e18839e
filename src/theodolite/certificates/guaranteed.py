"""The largest step along a line for which a decrease of the loss is guaranteed."""

import math
from dataclasses import dataclass, replace
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
from .search import Search, exactly, reach_of, upper
from .series import Series

# Points of the segment at which the loss and the layers are looked at.
_POINTS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class GuaranteedStep(Reading):
    r"""Steps along a direction that lower the loss for certain.

    All are multiples of the direction: along the negative gradient, learning rates.
    The bounds hold in exact arithmetic; rounding of their evaluation is in them.

    Attributes:
        step: Each step above 0 and up to this one lowers the loss.
        best_step: The one of them with the largest guaranteed decrease.
        decrease: That decrease: the loss falls by at least so much. All are 0
            where the loss does not fall at first, or, with status ROUNDING, where the
            network is so deep that rounding alone, bounded layer by layer, hides that.
        slope: Upper bound of the derivative of the loss along the direction, at 0.
        loss: The loss at these weights.
        loss_error: Its rounding.
        sharpness: Largest eigenvalue of the Hessian, NaN if not measured.
        sharpness_error: Its error.
        stable_step: Twice the descent over the sharpness, $2/\lambda_{max}$ along the
            negative gradient: the largest step of a parabola as sharp as that in all
            directions.
        ratio: ``step`` over ``stable_step``.
        bend_bound: On the segment up to ``step``, the loss is at most so far from its
            tangent.
        bend_found: The largest distance from the tangent at some points of it, a lower
            bound of the truth.
        looseness: ``bend_bound`` over ``bend_found``.
        layer_bounds: Bound of the norm of each layer's output minus its tangent.
        layers_found: The largest norm at these points.
        layer_looseness: The one over the other; NaN for layers that are straight.
        names: The layers' names in the model.
        evaluations: How often the loss was enclosed.
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
    layer_bounds: Annotated[np.ndarray, Dims("layer")]
    layers_found: Annotated[np.ndarray, Dims("layer")]
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
    evaluations: int = 3,
    measure: bool = True,
) -> GuaranteedStep:
    r"""Return the largest step for which a decrease of the loss is guaranteed.

    Along the segment the loss of the batch is enclosed by $\ell + s t + \kappa t^2$
    with intervals for s and $\kappa$, by Taylor's theorem in interval arithmetic,
    operator by operator, starting at the activations that the data has. Rectifiers and
    max pools whose kink the segment may reach widen s; others are straight.

    Args:
        problem: A model, one batch and a loss; not changed. Parameters that its
            ``params`` leave out stay where they are.
        direction: All entries of the parameters that move, one after the other, in the
            model's order; the negative gradient by default.
        evaluations: How often the loss is enclosed: once at the weights, then on
            segments, at some 20 gradients each.
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
    if evaluations < 2:
        raise MeasurementError(f"evaluations is {evaluations}: pass at least 2")
    ready = prepare(problem)
    with preserve(ready.model):
        along = _parts(ready, direction)
        search = Search(ready, along)
        search.run(evaluations)
        start, best = search.start, search.best
        search.check()
        loose = _Looseness(ready, along, start, best) if measure and best else None
    slope = upper(start, 1)
    sharpness = error = stable = math.nan
    if measure:
        top = extreme_eigenvalues(problem, ends="largest", tol=1e-3, max_matvecs=60)
        sharpness, error = float(top.eigenvalues[0]), float(top.errors[0])
        square = sum(float(part.square().sum()) for part in along)
        if sharpness > 0 and square and slope < 0:
            stable = -2 * slope / (sharpness * square)
    step = search.step
    best_step, decrease = search.decrease()
    return GuaranteedStep(
        step=step,
        best_step=best_step,
        decrease=decrease,
        slope=slope,
        loss=search.loss,
        loss_error=search.error(),
        sharpness=sharpness,
        sharpness_error=error,
        stable_step=stable,
        ratio=step / stable if stable > 0 else math.nan,
        bend_bound=loose.bound if loose else math.nan,
        bend_found=loose.found if loose else math.nan,
        looseness=_over(loose.bound, loose.found) if loose else math.nan,
        layer_bounds=loose.layer_bounds if loose else np.empty(0),
        layers_found=loose.layers_found if loose else np.empty(0),
        layer_looseness=loose.layer_looseness if loose else np.empty(0),
        names=loose.names if loose else (),
        evaluations=search.count,
        status=Status.EXACT if search.known else Status.ROUNDING,
        norm_mode=problem.mode,
        norm_layers=norm_layers_as_is(problem.model, problem.mode),
        cost=watch.read(passes=search.count),
        method="interval Taylor series along the segment",
    )


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


class _Looseness:
    """How far bounds on the segment are above what is found there."""

    def __init__(
        self,
        ready: Prepared,
        along: Parts,
        start: Series,
        best: tuple[Series, dict[str, Series]],
    ) -> None:
        loss, layers = best
        # The slopes that intervals of kinks are around.
        _, straight = ready.enclose(exactly(along), 0.0)
        length = min(loss.length, reach_of(loss))
        tangent = float(start.terms[1].mid) if start.terms[1] else 0.0
        ends = [[float(e) for e in one.ends()] if one else [0.0] * 2
                for one in loss.terms[1:]]  # fmt: skip
        self.bound = max(
            sign * (length * (ends[0][side] - tangent) + length**2 * ends[1][side])
            for side, sign in enumerate((-1, 1))
        )
        self.found, steps = 0.0, np.linspace(0, length, _POINTS + 1)[1:]
        at_zero = ready.run(along, 0.0)[0]
        found = dict.fromkeys(layers, 0.0)
        for t in steps:
            value, outputs = ready.run(along, float(t))
            self.found = max(self.found, abs(value - at_zero - tangent * float(t)))
            for name in layers:
                line = _line(straight[name], t)
                gap = float((outputs[name] - line).norm())
                found[name] = max(found[name], gap)
        self.names = tuple(layers)
        self.layer_bounds = np.array(
            [_gap(layers[name], straight[name], length) for name in layers]
        )
        self.layers_found = np.array([found[name] for name in layers])
        small = 1e-9 * np.array(
            [float(one.first.mid.norm()) for one in layers.values()]
        )
        bent = self.layers_found > small
        self.layer_looseness = np.where(
            bent, self.layer_bounds / np.where(bent, self.layers_found, 1.0), np.nan
        )


def _line(series: Series, t: float) -> Tensor:
    slope = series.terms[1]
    return series.first.mid + (0.0 if slope is None else float(t) * slope.mid)


def _gap(series: Series, straight: Series, length: float) -> float:
    """Return a bound of the norm of a tensor minus its tangent, on the segment."""
    line = replace(straight, terms=(*straight.terms[:2], None), length=length)
    away = series - line
    total = torch.zeros_like(series.first.mid)
    for power, term in enumerate(away.terms):
        if term is not None:
            total = total + length**power * term.size()
    return float(total.norm()) * (1 + 1e-12)


def _over(bound: float, found: float) -> float:
    return bound / found if found > 0 else math.inf
