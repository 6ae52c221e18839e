r"""Layers of a system at given weights: f, Jf and Df, and DF of the whole.

Matrices act on batches written as vectors, rows first: the entry of feature i and
sample n of N is at $iN + n$. A map of each sample by itself is a stack of matrices, one
per sample or one for all.

Weights of a layer are arrays by name: ``weight``, ``bias`` and ``lengths`` of affine
layers and convolutions; ``weight``, ``bias``, ``mean`` and ``variance`` of batch norms,
those that it has; of a residual block, a tuple of those of its branch.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    ConvolutionLayer,
    FlattenLayer,
    NonlinearLayer,
    Numbers,
    ResidualLayer,
    SystemBlueprint,
    SystemLayer,
    as_numbers,
)

from .nonlinearities import nonlinearity_derivatives

Weights = Any  # as the docstring of the module says
Weighted = AffineLayer | ConvolutionLayer


def system_jacobian(
    blueprint: SystemBlueprint, weights: Sequence[Weights], data: Numbers
) -> np.ndarray:
    r"""Return DF, assembled from the layers' derivatives by the chain rule.

    Assumes: a ``SystemBlueprint`` whose layers are differentiable where their inputs
    lie.

    Args:
        blueprint: The system.
        weights: Arrays by name, for each layer.
        data: Samples along the first axis.

    Returns:
        Shape (outputs of a sample times samples, parameters): rows by output, then
        sample; columns by layer, then in the order weight, lengths, bias, each rows
        first.

    References:
        MacDonald et al. (2023), equations 10, 11, 17, 18 and 21.

    Example:
        >>> from theodolite.core import AffineLayer, SystemBlueprint
        >>> plan = SystemBlueprint(inputs=2, layers=(AffineLayer(into=2, out=1),))
        >>> system_jacobian(plan, [{"weight": np.ones((1, 2))}], [[1.0, 2.0]])
        array([[1., 2.]])
    """
    z = as_numbers("data", data, "samples", *blueprint.shapes[0])
    return _chained(blueprint.layers, weights, z)


def layer_value(layer: SystemLayer, weights: Weights, z: Numbers) -> np.ndarray:
    """Return the output of a layer for a batch, samples along the first axis.

    Example:
        >>> layer_value(NonlinearLayer(activation="tanh"), {}, np.zeros((1, 2)))
        array([[0., 0.]])
    """
    z = as_numbers("z", z, "samples", "features", ...)
    if isinstance(layer, AffineLayer):
        return z @ matrix_of(layer, weights).T + weights.get("bias", 0.0)
    if isinstance(layer, ConvolutionLayer):
        value = np.einsum("ok,nkp->nop", matrix_of(layer, weights), unfolded(layer, z))
        value += np.asarray(weights.get("bias", np.zeros(layer.out)))[:, None]
        return value.reshape(len(z), *layer.shape_after(z.shape[1:]))
    if isinstance(layer, NonlinearLayer):
        return nonlinearity_derivatives(layer.activation, z)[0]
    if isinstance(layer, FlattenLayer):
        return z.reshape(len(z), -1)
    if isinstance(layer, BatchNormLayer):
        rows = _rows(z)
        scale, shift = _affine_of(layer, weights)
        value = scale[:, None] * _normalised(layer, weights, rows)[0] + shift[:, None]
        value = value.reshape(len(value), len(z), *z.shape[2:])
        return np.moveaxis(value, 0, 1)
    assert isinstance(layer, ResidualLayer)
    value = z
    for one, own in zip(layer.branch, weights, strict=True):
        value = layer_value(one, own, value)
    return _skipped(z, value.shape[1]) + value


def input_jacobian(layer: SystemLayer, weights: Weights, z: Numbers) -> np.ndarray:
    """Return Jf: one matrix per sample, one shared by all, or one that mixes samples.

    Example:
        >>> input_jacobian(NonlinearLayer(activation="tanh"), {}, np.zeros((3, 1)))[:2]
        array([[[1.]],
        <BLANKLINE>
               [[1.]]])
    """
    z = as_numbers("z", z, "samples", "features", ...)
    features = math.prod(z.shape[1:])
    if isinstance(layer, AffineLayer):
        return matrix_of(layer, weights)[None]
    if isinstance(layer, ConvolutionLayer):
        basis = np.eye(features).reshape(features, *z.shape[1:])
        patches = unfolded(layer, basis)
        jacobian = np.einsum("ok,fkp->opf", matrix_of(layer, weights), patches)
        return jacobian.reshape(1, -1, features)
    if isinstance(layer, NonlinearLayer):
        slope = nonlinearity_derivatives(layer.activation, z)[1]
        return slope.reshape(len(z), features, 1) * np.eye(features)
    if isinstance(layer, FlattenLayer):
        return np.eye(features)[None]
    if isinstance(layer, BatchNormLayer):
        return _norm_jacobian(layer, weights, z)
    assert isinstance(layer, ResidualLayer)
    branch, value = np.eye(features)[None], z
    for one, own in zip(layer.branch, weights, strict=True):
        branch = composed(input_jacobian(one, own, value), branch, len(z))
        value = layer_value(one, own, value)
    wide = math.prod(value.shape[1:])
    skip = np.eye(wide, features)[None]  # channels first, so that images are cut too
    return skip + branch if branch.ndim == 3 else dense(skip, len(z)) + branch


def parameter_jacobian(layer: SystemLayer, weights: Weights, z: Numbers) -> np.ndarray:
    r"""Return Df, shape (outputs times samples, parameters).

    For an affine layer it is $((I \otimes X^\top)\,DP(w),\; I \otimes 1)$.

    Example:
        >>> parameter_jacobian(
        ...     AffineLayer(into=1, out=1, bias=True),
        ...     {"weight": np.ones((1, 1)), "bias": np.zeros(1)},
        ...     np.array([[3.0], [4.0]]),
        ... )
        array([[3., 1.],
               [4., 1.]])
    """
    z = as_numbers("z", z, "samples", "features", ...)
    if isinstance(layer, AffineLayer | ConvolutionLayer | BatchNormLayer):
        blocks = row_derivatives(layer, weights, z)
        return _in_order(layer, blocks, z)
    if not isinstance(layer, ResidualLayer):
        outputs = math.prod(layer.shape_after(z.shape[1:])) * len(z)
        return np.zeros((outputs, 0))
    return _chained(layer.branch, weights, z)


def _chained(
    layers: Sequence[SystemLayer], weights: Sequence[Weights], z: np.ndarray
) -> np.ndarray:
    """Return the derivative of a chain by all its parameters, by the chain rule."""
    slopes: list[np.ndarray] = []
    for layer, own in zip(layers, weights, strict=True):
        jacobian = dense(input_jacobian(layer, own, z), len(z))
        slopes = [jacobian @ slope for slope in slopes]
        slopes.append(parameter_jacobian(layer, own, z))
        z = layer_value(layer, own, z)
    return np.hstack(slopes) if slopes else np.zeros((z.size, 0))


def row_derivatives(
    layer: Weighted | BatchNormLayer, weights: Weights, z: np.ndarray
) -> np.ndarray:
    """Return Df for each row of the output matrix; rows share no parameters.

    Shape (features, samples times places, parameters of a feature): of the weights,
    then the length, then the bias.
    """
    if isinstance(layer, BatchNormLayer):
        count = z.size // layer.features
        if not layer.affine:
            return np.zeros((layer.features, count, 0))
        normal = _normalised(layer, weights, _rows(z))[0]
        return np.stack([normal, np.ones_like(normal)], axis=2)
    patches = z.T if isinstance(layer, AffineLayer) else _rows(unfolded(layer, z))
    blocks = _moved(layer, weights, patches.T)
    if not layer.bias:
        return blocks
    return np.concatenate([blocks, np.ones((*blocks.shape[:2], 1))], axis=2)


def matrix_of(layer: Weighted, weights: Weights) -> np.ndarray:
    """Return the factor times P(w), one row per output channel."""
    w = _raw(weights)
    if layer.parameterisation == "weight_norm":
        w = w / np.sqrt(layer.eps + (w**2).sum(1, keepdims=True))
    elif layer.parameterisation == "entry_norm":
        w = w / np.sqrt(layer.eps + w**2)
    elif layer.parameterisation == "length_direction":
        lengths = np.asarray(weights["lengths"], dtype=float)[:, None]
        w = lengths * w / np.linalg.norm(w, axis=1, keepdims=True)
    return layer.scale * w


def _moved(layer: Weighted, weights: Weights, samples: np.ndarray) -> np.ndarray:
    """Return the factor times X^T DP for each row of the matrix.

    Shape (rows, samples, parameters of a row).
    """
    w, x = _raw(weights), samples[None]
    if layer.parameterisation == "plain":
        blocks = np.broadcast_to(x, (len(w), *samples.shape))
    elif layer.parameterisation == "entry_norm":
        blocks = x * (layer.eps * (layer.eps + w**2) ** -1.5)[:, None, :]
    elif layer.parameterisation == "weight_norm":
        q = (layer.eps + (w**2).sum(1))[:, None, None]
        along = (w @ samples.T)[:, :, None]
        blocks = q**-0.5 * (x - along * w[:, None, :] / q)
    else:
        norms = np.linalg.norm(w, axis=1, keepdims=True)
        unit, lengths = w / norms, np.asarray(weights["lengths"], dtype=float)
        along = (unit @ samples.T)[:, :, None]
        across = (lengths[:, None] / norms)[..., None] * (x - along * unit[:, None, :])
        blocks = np.concatenate([across, along], axis=2)
    return layer.scale * blocks


def unfolded(layer: ConvolutionLayer, z: np.ndarray) -> np.ndarray:
    """Return the patches of images: (samples, numbers of a patch, places)."""
    (a, b), (down, along), (p, q) = layer.kernel, layer.stride, layer.padding
    padded = np.pad(z, ((0, 0), (0, 0), (p, p), (q, q)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (a, b), axis=(2, 3))
    windows = windows[:, :, ::down, ::along]
    moved = windows.transpose(0, 1, 4, 5, 2, 3)
    return moved.reshape(len(z), layer.columns, -1)


def composed(outer: np.ndarray, inner: np.ndarray, samples: int) -> np.ndarray:
    """Return the product of two maps; it is a stack if both are."""
    if outer.ndim == inner.ndim == 3:
        return outer @ inner
    return dense(outer, samples) @ dense(inner, samples)


def dense(jacobian: np.ndarray, samples: int) -> np.ndarray:
    """Return a stack as one matrix, rows and columns by feature, then sample."""
    if jacobian.ndim == 2:
        return jacobian
    out, into = jacobian.shape[1:]
    stack = np.broadcast_to(jacobian, (samples, out, into))
    matrix = np.zeros((out, samples, into, samples))
    places = np.arange(samples)
    matrix[:, places, :, places] = stack
    return matrix.reshape(out * samples, into * samples)


def _raw(weights: Weights) -> np.ndarray:
    w = np.asarray(weights["weight"], dtype=float)
    return w.reshape(len(w), -1)


def _in_order(
    layer: Weighted | BatchNormLayer, blocks: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """Place the rows' derivatives among all parameters, by name and then by row."""
    rows, count, width = blocks.shape
    places = count // len(z)
    # (rows, samples × places) to rows by (row, place), then sample.
    split = blocks.reshape(rows, len(z), places, width).transpose(0, 2, 1, 3)
    if isinstance(layer, BatchNormLayer):
        named = min(width, 1)
    else:
        lengths = layer.parameterisation == "length_direction"
        named = width - layer.bias - lengths
    ends = range(named, width)
    parts = [split[..., :named], *(split[..., end : end + 1] for end in ends)]
    return np.hstack([_spread(part) for part in parts])


def _spread(split: np.ndarray) -> np.ndarray:
    """Return a block-diagonal matrix of the rows' own blocks."""
    rows, places, samples, width = split.shape
    matrix = np.zeros((rows, places, samples, rows, width))
    row = np.arange(rows)
    matrix[row, :, :, row] = split
    return matrix.reshape(rows * places * samples, rows * width)


def _rows(z: np.ndarray) -> np.ndarray:
    """Return one row per feature, with all samples and places."""
    return np.moveaxis(z, 1, 0).reshape(z.shape[1], -1)


def _affine_of(
    layer: BatchNormLayer, weights: Weights
) -> tuple[np.ndarray, np.ndarray]:
    if not layer.affine:
        return np.ones(layer.features), np.zeros(layer.features)
    return np.asarray(weights["weight"], float), np.asarray(weights["bias"], float)


def _normalised(
    layer: BatchNormLayer, weights: Weights, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return normalised rows and their divisors."""
    if layer.statistics == "held":
        mean, variance = (
            np.asarray(weights[one], float)[:, None] for one in ("mean", "variance")
        )
    else:
        mean, variance = rows.mean(1, keepdims=True), rows.var(1, keepdims=True)
    deviation = np.sqrt(layer.eps + variance)
    return (rows - mean) / deviation, deviation[:, 0]


def _norm_jacobian(
    layer: BatchNormLayer, weights: Weights, z: np.ndarray
) -> np.ndarray:
    normal, deviation = _normalised(layer, weights, _rows(z))
    scale = _affine_of(layer, weights)[0] / deviation
    places = normal.shape[1] // len(z)
    if layer.statistics == "held":
        return np.diag(np.repeat(scale, places))[None]
    count = normal.shape[1]
    own = np.eye(count) - 1 / count - normal[:, :, None] * normal[:, None, :] / count
    own = scale[:, None, None] * own
    # From (sample, place) within a feature to (place, sample).
    split = own.reshape(layer.features, len(z), places, len(z), places)
    split = split.transpose(0, 2, 1, 4, 3).reshape(layer.features, count, count)
    jacobian = np.zeros((layer.features, count, layer.features, count))
    row = np.arange(layer.features)
    jacobian[row, :, row] = split
    return jacobian.reshape(z.size, z.size)


def _skipped(z: np.ndarray, features: int) -> np.ndarray:
    more = max(features - z.shape[1], 0)
    return np.pad(z[:, :features], ((0, 0), (0, more)) + ((0, 0),) * (z.ndim - 2))
