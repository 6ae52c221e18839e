"""What theory guarantees of a network's loss, beside what is measured."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.certificates.balls import balls_about
from theodolite.certificates.conditions import as_rows, conditions, require
from theodolite.certificates.costs import TargetedCost, targeted
from theodolite.certificates.reading import Certificate
from theodolite.certificates.recognising import RecognisedSystem, recognise
from theodolite.core import MeasurementError, NormMode, Status, Stopwatch
from theodolite.instruments import (
    DenseTangentKernel,
    apply_norm_mode,
    preserve,
    run_model,
    tangent_kernel,
)
from theodolite.theory import (
    CostBounds,
    Regularity,
    SystemBounds,
    extent_of,
    layer_value,
    system_bounds,
    system_regularity,
)

# How far the layers' own arithmetic may lie from the model's: this many roundings of
# the model's type, relative to the largest output, by choice.
_ROUNDINGS = 1e4


def certificate(
    system: nn.Module,
    data: tuple[Any, Any],
    cost: object,
    *,
    norm_mode: NormMode | str = "batch",
    radius: float = math.inf,
    theorem: str | None = None,
    matrix_bytes: int = 4 * 2**30,
) -> Certificate:
    r"""Certify the smoothness and the regularity of a network's loss.

    From its layers alone: a $\beta$ that no Hessian's norm exceeds, the step that it
    certifies, and a lower bound of the smallest eigenvalue of the tangent kernel, layer
    by layer, beside the true one; and which hypotheses of theorems 4.5, 4.7 and 5.1
    hold on all of parameter space. Weights that are not normalised are unbounded, and
    then so is $\beta$; within a ``radius`` of where they are it is finite.

    Args:
        system: A network of a ``SystemBlueprint``, or an ``nn.Sequential`` of layers
            that :func:`recognise` knows; left as found.
        data: Inputs and targets, one batch.
        cost: ``cross_entropy`` with classes, ``square``
            ($\frac1{2N}\sum\|z - y\|^2$), ``logistic`` with signs, or torch's
            CrossEntropyLoss, MSELoss or BCEWithLogitsLoss, or HalfSquareLoss.
        norm_mode: Statistics of batch norms: ``batch``, ``full`` or ``eval``.
        radius: How far each layer's parameters may lie from where they are.
        theorem: ``4.5``, ``4.7`` or ``5.1``, to refuse what it does not apply to.
        matrix_bytes: Memory that the tangent kernel may take.

    Returns:
        The certificate.

    References:
        MacDonald et al. (2023), On skip connections and normalisation layers in deep
        optimisation, section 4.

    Example:
        >>> from theodolite.core import normalised_residual
        >>> from theodolite.networks import build
        >>> network = build(normalised_residual(inputs=4, widths=(3, 3)), seed=0)
        >>> x = torch.eye(4, dtype=torch.float64)[:3]
        >>> found = certificate(network, (x, torch.arange(3)), "cross_entropy")
        >>> found.kernel_bound <= found.kernel_smallest, found.applies("5.1")
        (True, True)
    """
    watch, mode = Stopwatch(), NormMode(norm_mode)
    inputs, targets = _pair(data)
    found = recognise(system, tuple(inputs.shape[1:]), norm_mode=mode)
    x = inputs.detach().double().cpu().numpy()
    outputs = _outputs(found, x)
    _check_outputs(system, inputs, outputs, mode)
    goal = targeted(cost, targets, outputs.shape)
    extent = extent_of(x)
    bounds = _bounds(found, extent, radius)
    everywhere = bounds if radius == math.inf else _bounds(found, extent, math.inf)
    judged = conditions(found, x, goal.bounds(everywhere.outputs))
    if theorem is not None:
        require(theorem, judged)
    regular = system_regularity(found.blueprint, found.weights, x)
    kernel = tangent_kernel(
        system,
        inputs,
        norm_mode=mode,
        params=[name for name, _ in system.named_parameters()],
        matrix_bytes=matrix_bytes,
    )
    return _certified(
        found, bounds, regular, kernel, goal, outputs, as_rows(judged), radius, watch
    )


def _bounds(found: RecognisedSystem, extent: Any, radius: float) -> SystemBounds:
    balls = balls_about(found.blueprint.layers, found.weights, radius)
    return system_bounds(found.blueprint, extent, balls)


def _certified(
    found: RecognisedSystem,
    bounds: SystemBounds,
    regular: Regularity,
    kernel: DenseTangentKernel,
    goal: TargetedCost,
    outputs: np.ndarray,
    hypotheses: Any,
    radius: float,
    watch: Stopwatch,
) -> Certificate:
    costs = goal.bounds(bounds.outputs)
    beta = bounds.smoothness(costs.gradient, costs.curvature)
    loss, slope = goal.at(outputs)
    square, error = _gradient_square(kernel, slope)
    ratio, ratio_error = _ratio(square, error, loss - costs.floor)
    return Certificate(
        smoothness=beta,
        step=_step(beta, radius, square),
        derivative=bounds.derivative,
        kernel_bound=regular.bound,
        kernel_smallest=kernel.smallest,
        kernel_error=kernel.eigenvalue_error,
        own=regular.own,
        onward=regular.onward,
        terms=regular.terms,
        loss=loss,
        floor=costs.floor,
        ratio=ratio,
        ratio_error=ratio_error,
        polyak=costs.polyak,
        ratio_bound=costs.polyak * regular.bound,
        radius=float(radius),
        names=found.names,
        hypotheses=hypotheses,
        reasons=(*_reasons(bounds, costs, beta), *regular.notes),
        status=kernel.status if math.isfinite(kernel.smallest) else Status.NONFINITE,
        norm_mode=kernel.norm_mode,
        cost=watch.read(passes=kernel.cost.passes + 1),
        method=f"bounds by layer, tangent kernel: {kernel.method}",
    )


def _reasons(bounds: SystemBounds, costs: CostBounds, beta: float) -> tuple[str, ...]:
    own = (f"cost: {costs.why}",) if costs.why else ()
    if beta == math.inf and not bounds.reasons and not own:
        return ("the product of the layers' bounds passes the largest float",)
    return (*bounds.reasons, *own)


def _gradient_square(
    kernel: DenseTangentKernel, slope: np.ndarray
) -> tuple[float, float]:
    r"""Return $\|\nabla\ell\|^2 = \nabla\gamma^\top K \nabla\gamma$ and its error."""
    flat = slope.reshape(-1)  # samples slow, as the kernel's rows
    square = float(flat @ kernel.matrix @ flat)
    return max(square, 0.0), kernel.matrix_error * float(np.abs(flat).sum()) ** 2


def _ratio(square: float, error: float, gap: float) -> tuple[float, float]:
    return (square / gap, error / gap) if gap > 0 else (math.nan, math.nan)


def _step(beta: float, radius: float, square: float) -> float:
    if beta == math.inf:
        return 0.0
    length = 1 / beta if beta > 0 else math.inf
    return min(length, radius / math.sqrt(square)) if square > 0 else length


def _pair(data: Any) -> tuple[Tensor, Any]:
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise MeasurementError(
            f"data is a {type(data).__name__}: pass a pair (inputs, targets)"
        )
    inputs = data[0]
    if not isinstance(inputs, Tensor) or inputs.ndim < 2 or not len(inputs):
        raise MeasurementError(
            "inputs are no tensor of samples along the first axis and features along "
            "the others: pass for instance torch.as_tensor(inputs)"
        )
    return inputs, data[1]


def _outputs(found: RecognisedSystem, x: np.ndarray) -> np.ndarray:
    z = x
    for layer, weights in zip(found.blueprint.layers, found.weights, strict=True):
        z = layer_value(layer, weights, z)
    if z.ndim != 2:
        raise MeasurementError(
            f"the model puts out samples of shape {z.shape[1:]}, and costs are of "
            "rows: end with Flatten"
        )
    return z


def _check_outputs(
    model: nn.Module, inputs: Tensor, outputs: np.ndarray, mode: NormMode
) -> None:
    """Refuse a model whose forward pass is not the chain of its layers."""
    with preserve(model), torch.no_grad():
        apply_norm_mode(model, mode, lambda: None)
        came = run_model(model, inputs)
    own = came.detach().double().cpu().numpy() if isinstance(came, Tensor) else None
    limit = _ROUNDINGS * torch.finfo(inputs.dtype).eps
    scale = max(float(np.abs(outputs).max()), 1.0)
    if (
        own is None
        or own.shape != outputs.shape
        or (not np.abs(own - outputs).max() <= limit * scale)
    ):
        raise MeasurementError(
            "the model's outputs are not those of its layers one after the other: "
            "pass a chain that runs each of its layers once, on finite data"
        )
