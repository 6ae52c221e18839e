"""Bounds that theory guarantees for a network's loss, next to measured values."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    ConvolutionLayer,
    MeasurementError,
    NormMode,
    ResidualLayer,
    Status,
    Stopwatch,
    SystemLayer,
)
from theodolite.instruments import (
    apply_norm_mode,
    measuring,
    norm_layers_as_is,
    preserve,
    run_model,
    tangent_kernel,
)
from theodolite.theory import (
    CostBounds,
    ParameterBall,
    SystemBounds,
    extent_of,
    layer_value,
    system_bounds,
    system_regularity,
)

from .conditions import conditions, require
from .costs import targeted
from .reading import Certificate
from .recognition import RecognisedSystem, recognise


def balls_about(
    layers: tuple[SystemLayer, ...], weights: tuple[Any, ...], radius: float
) -> tuple[Any, ...]:
    """Return, for each layer, the ball of a radius around its weights."""
    return tuple(
        _ball(layer, own, radius) for layer, own in zip(layers, weights, strict=True)
    )


def _ball(layer: SystemLayer, weights: Any, radius: float) -> Any:
    if isinstance(layer, ResidualLayer):
        return balls_about(layer.branch, weights, radius)
    numbers = {"bias": _norm(weights, "bias")}
    if isinstance(layer, BatchNormLayer):
        scale = float(np.abs(weights["weight"]).max()) if layer.affine else 1.0
        numbers["weight"] = scale
        if layer.statistics == "held":
            least = float(weights["variance"].min())
            numbers["floor"] = math.sqrt(layer.eps + least)
            numbers["shift"] = float(np.abs(weights["mean"]).max())
    elif isinstance(layer, AffineLayer | ConvolutionLayer):
        matrix = weights["weight"].reshape(layer.out, -1)
        numbers["weight"] = float(np.linalg.norm(matrix, 2))
        numbers["length"] = _norm(weights, "lengths")
        numbers["floor"] = float(np.linalg.norm(matrix, axis=1).min())
    return ParameterBall(radius=radius, **numbers)


def _norm(weights: Any, name: str) -> float:
    return float(np.linalg.norm(weights[name])) if name in weights else 0.0


# Allowed difference between our outputs of the layers and the model's, in roundings of
# the model's dtype, relative to the largest output (our choice).
_ROUNDINGS = 1e4


@measuring()
def certificate(
    system: nn.Module,
    data: tuple[Any, Any],
    cost: object,
    *,
    norm_mode: NormMode | str = "batch",
    radius: float = math.inf,
    theorem: str | None = None,
    measure_kernel: bool = True,
    matrix_bytes: int = 4 * 2**30,
) -> Certificate:
    r"""Return guaranteed bounds on the smoothness and regularity of a network's loss.

    From its layers alone: a $\beta$ that no Hessian's norm exceeds, the step that it
    certifies, and a lower bound of the smallest eigenvalue of the tangent kernel, layer
    by layer, next to the true one; and which hypotheses of theorems 4.5, 4.7 and 5.1
    hold on all of parameter space. Weights that are not normalised are unbounded, and
    then so is $\beta$; within a ``radius`` of the present weights it is finite.

    Args:
        system: A network of a ``SystemBlueprint``, or an ``nn.Sequential`` of layers
            that :func:`recognise` knows; not changed.
        data: Inputs and targets, one batch.
        cost: ``cross_entropy`` with classes, ``square``
            ($\frac1{2N}\sum\|z - y\|^2$), ``logistic`` with signs, or torch's
            CrossEntropyLoss, MSELoss or BCEWithLogitsLoss, or HalfSquareLoss.
        norm_mode: Statistics of batch norms: ``batch``, ``full``, ``eval``, ``as_is``.
        radius: Largest distance of each layer's parameters from the present ones.
        theorem: ``4.5``, ``4.7`` or ``5.1``; raise if it does not apply.
        measure_kernel: Whether to measure the true smallest eigenvalue, at a cost that
            grows with the square of all outputs; NaN otherwise.
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
        >>> result = certificate(network, (x, torch.arange(3)), "cross_entropy")
        >>> result.kernel_bound <= result.kernel_smallest, result.applies("5.1")
        (True, True)
    """
    watch, mode = Stopwatch(), NormMode(norm_mode)
    radius = float(radius)
    inputs, targets = _pair(data)
    recognised = recognise(system, tuple(inputs.shape[1:]), norm_mode=mode)
    x = inputs.detach().double().cpu().numpy()
    outputs = _outputs(recognised, x)
    goal = targeted(cost, targets, outputs.shape)
    extent = extent_of(x)
    bounds = _bounds(recognised, extent, radius)
    everywhere = bounds if radius == math.inf else _bounds(recognised, extent, math.inf)
    judged = conditions(recognised, x, goal.bounds(everywhere.outputs))
    if theorem is not None:
        require(str(theorem), judged)
    loss, slope = goal.at(outputs)
    square = _gradient_square(system, inputs, outputs, slope, mode)
    kernel = None
    if measure_kernel:
        kernel = tangent_kernel(
            system,
            inputs,
            norm_mode=mode,
            params=[name for name, _ in system.named_parameters()],
            matrix_bytes=matrix_bytes,
        )
    costs = goal.bounds(bounds.outputs)
    beta = bounds.smoothness(costs.gradient, costs.curvature)
    ratio = square / (loss - costs.floor) if loss > costs.floor else math.nan
    regular = system_regularity(recognised.blueprint, recognised.weights, x)
    return Certificate(
        smoothness=beta,
        step=_step(beta, radius, square),
        derivative=bounds.derivative,
        kernel_bound=regular.bound,
        kernel_smallest=math.nan if kernel is None else kernel.smallest,
        kernel_error=math.nan if kernel is None else kernel.eigenvalue_error,
        own=regular.own,
        onward=regular.onward,
        terms=regular.terms,
        loss=loss,
        floor=costs.floor,
        ratio=ratio,
        ratio_error=_ROUNDINGS * torch.finfo(inputs.dtype).eps * ratio,
        polyak=costs.polyak,
        ratio_bound=costs.polyak * regular.bound,
        radius=radius,
        names=recognised.names,
        hypotheses=judged,
        reasons=(*_reasons(bounds, costs, beta), *regular.notes),
        status=Status.EXACT if kernel is None else kernel.status,
        norm_mode=mode,
        norm_layers=norm_layers_as_is(system, mode),
        cost=watch.read(passes=2 + (0 if kernel is None else kernel.cost.passes)),
        method="bounds by layer"
        + ("" if kernel is None else f", tangent kernel: {kernel.method}"),
    )


def _bounds(recognised: RecognisedSystem, extent: Any, radius: float) -> SystemBounds:
    balls = balls_about(recognised.blueprint.layers, recognised.weights, radius)
    return system_bounds(recognised.blueprint, extent, balls)


def _reasons(bounds: SystemBounds, costs: CostBounds, beta: float) -> tuple[str, ...]:
    own = (f"cost: {costs.why}",) if costs.why else ()
    # Unbounded parts inside, such as weights before a norm, may not matter.
    if math.isfinite(beta) and math.isfinite(bounds.derivative):
        return own
    if not bounds.reasons and not own:
        return ("the product of the layers' bounds passes the largest float",)
    return (*bounds.reasons, *own)


def _step(beta: float, radius: float, square: float) -> float:
    if beta == math.inf:
        return 0.0
    length = 1 / beta if beta > 0 else math.inf
    return min(length, radius / math.sqrt(square)) if square > 0 else length


def _pair(data: Any) -> tuple[Tensor, Any]:
    inputs = data[0]
    real = isinstance(inputs, Tensor) and inputs.is_floating_point()
    if not real or inputs.ndim < 2 or not len(inputs):
        raise MeasurementError(
            "inputs are no tensor of real numbers with samples along the first axis "
            "and features along the others: pass for instance torch.as_tensor(inputs)"
        )
    if inputs.is_meta or torch.finfo(inputs.dtype).eps * _ROUNDINGS > 0.1:
        raise MeasurementError(
            f"inputs are of type {inputs.dtype} on {inputs.device}, in which no output "
            "can be checked: pass numbers of type float32 or float64, and the model in "
            "the same"
        )
    return inputs, data[1]


def _outputs(recognised: RecognisedSystem, x: np.ndarray) -> np.ndarray:
    z = x
    for layer, weights in zip(
        recognised.blueprint.layers, recognised.weights, strict=True
    ):
        z = layer_value(layer, weights, z)
    if z.ndim != 2:
        raise MeasurementError(
            f"the model puts out samples of shape {z.shape[1:]}, and costs are of "
            "rows: end with Flatten"
        )
    return z


def _gradient_square(
    model: nn.Module,
    inputs: Tensor,
    outputs: np.ndarray,
    slope: np.ndarray,
    mode: NormMode,
) -> float:
    r"""Return $\|\nabla\ell\|^2$ by one backward pass from the cost's gradient.

    Refuses a model whose forward pass is not the chain of its layers.
    """
    with preserve(model), torch.enable_grad():
        apply_norm_mode(model, mode, lambda: None)
        parameters = list(model.requires_grad_(True).parameters())
        try:
            came = run_model(model, inputs.detach())
        except ValueError as error:  # e.g. a batch norm's, per feature
            raise MeasurementError(
                f"the model does not run on the inputs ({str(error).splitlines()[0]}): "
                "pass more samples, or another norm mode"
            ) from error
        _check_outputs(came, outputs)
        start = torch.as_tensor(slope, device="cpu").to(came)
        parts = torch.autograd.grad(came, parameters, start, allow_unused=True)
    return sum(
        float(part.double().square().sum()) for part in parts if part is not None
    )


def _check_outputs(came: Any, outputs: np.ndarray) -> None:
    fits = isinstance(came, Tensor) and tuple(came.shape) == outputs.shape
    if fits:
        limit = _ROUNDINGS * torch.finfo(came.dtype).eps
        gap = np.abs(came.detach().double().cpu().numpy() - outputs).max()
        fits = bool(gap <= limit * max(float(np.abs(outputs).max()), 1.0))
    if not fits:
        raise MeasurementError(
            "the model's outputs are not those of its layers one after the other: "
            "pass a chain that runs each of its layers once, on finite data"
        )
