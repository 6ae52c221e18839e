"""Balls about the parameters of a system's layers."""

import math
from typing import Any

import numpy as np

from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    ConvolutionLayer,
    ResidualLayer,
    SystemLayer,
)
from theodolite.theory import ParameterBall


def balls_about(
    layers: tuple[SystemLayer, ...], weights: tuple[Any, ...], radius: float
) -> tuple[Any, ...]:
    """Return the ball of a radius about each layer's weights."""
    return tuple(
        _ball(layer, own, radius) for layer, own in zip(layers, weights, strict=True)
    )


def _ball(layer: SystemLayer, weights: Any, radius: float) -> Any:
    if isinstance(layer, ResidualLayer):
        return balls_about(layer.branch, weights, radius)
    if isinstance(layer, BatchNormLayer):
        return _of_norm(layer, weights, radius)
    if not isinstance(layer, AffineLayer | ConvolutionLayer):
        return ParameterBall(radius=radius)
    matrix = weights["weight"].reshape(layer.out, -1)
    return ParameterBall(
        radius=radius,
        weight=float(np.linalg.norm(matrix, 2)),
        bias=_norm(weights, "bias"),
        length=_norm(weights, "lengths"),
        floor=float(np.linalg.norm(matrix, axis=1).min()),
    )


def _of_norm(layer: BatchNormLayer, weights: Any, radius: float) -> ParameterBall:
    floor = shift = 0.0
    if layer.statistics == "held":
        floor = math.sqrt(layer.eps + float(weights["variance"].min()))
        shift = float(np.abs(weights["mean"]).max())
    scale = float(np.abs(weights["weight"]).max()) if layer.affine else 1.0
    bias = _norm(weights, "bias")
    return ParameterBall(
        radius=radius, weight=scale, bias=bias, floor=floor, shift=shift
    )


def _norm(weights: Any, name: str) -> float:
    return float(np.linalg.norm(weights[name])) if name in weights else 0.0
