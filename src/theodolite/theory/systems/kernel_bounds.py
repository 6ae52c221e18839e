r"""A lower bound of the tangent kernel of a system, layer by layer.

Notation: $\lambda(A)$ the smallest eigenvalue of $AA^\top$, zero where A has more rows
than columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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

from .jacobians import (
    Weights,
    input_jacobian,
    layer_value,
    parameter_jacobian,
    row_derivatives,
)
from .nonlinearities import nonlinearity_derivatives

# Largest number of rows for which the singular values of all samples are computed: one
# second for fifty layers. Above it, the layers' terms bound the term of a block.
LARGEST_DENSE = 256
# Largest number of entries of a stack of Jacobians; above it, λ is bounded by zero.
LARGEST_STACK = 2**25
_LARGEST_ROOT = 2.0**511


@dataclass(frozen=True, kw_only=True, eq=False)
class Regularity:
    r"""A lower bound of the tangent kernel, and its terms.

    Attributes:
        own: $\lambda(Df_l)$ of each layer.
        onward: $\lambda(Jf_l)$ of each layer.
        terms: $\lambda(Df_l)\prod_{j>l}\lambda(Jf_j)$.
        notes: Where a number is itself a bound, and why.
    """

    own: np.ndarray
    onward: np.ndarray
    terms: np.ndarray
    notes: tuple[str, ...]

    @property
    def bound(self) -> float:
        r"""Lower bound of $\lambda(DF)$: the sum of the terms."""
        return float(self.terms.sum())


def system_regularity(
    blueprint: SystemBlueprint, weights: Sequence[Weights], data: Numbers
) -> Regularity:
    r"""Return a lower bound of the tangent kernel $DF\,DF^\top$'s least eigenvalue.

    Through a batch norm with the batch's statistics $\lambda(Jf) = 0$, since constants
    are lost: no layer before one adds anything.

    Assumes: a ``SystemBlueprint`` whose layers are differentiable where their inputs
    lie.

    Takes the arguments of ``system_jacobian``.

    References:
        MacDonald et al. (2023), proposition 4.6.

    Example:
        >>> from theodolite.core import normalised_residual
        >>> plan = normalised_residual(inputs=2, widths=(1,), eps=1.0)
        >>> kernel = system_regularity(plan, [{"weight": np.zeros((1, 2))}], np.eye(2))
        >>> kernel.bound
        1.0
    """
    z = as_numbers("data", data, "samples", *blueprint.shapes[0])
    own, onward, notes = [], [], []
    for place, (layer, part) in enumerate(zip(blueprint.layers, weights, strict=True)):
        value, note = _own(layer, part, z)
        through, other = _onward(layer, part, z)
        own.append(value)
        onward.append(through)
        notes += [
            f"layer {place} ({layer.kind}): {one}" for one in (note, other) if one
        ]
        z = layer_value(layer, part, z)
    after = np.append(np.cumprod(onward[:0:-1])[::-1], 1.0)
    return Regularity(
        own=np.array(own),
        onward=np.array(onward),
        terms=np.array(own) * after,
        notes=tuple(notes),
    )


def smallest_eigenvalue(matrix: np.ndarray) -> float:
    r"""Return $\lambda(A)$, the least of a stack; zero where rows outnumber columns."""
    if matrix.shape[-2] > matrix.shape[-1] or not matrix.size:
        return 0.0
    values = np.linalg.svd(matrix, compute_uv=False)
    # A lower bound stays one where it is cut at the largest float.
    return min(float(values[..., -1].min()), _LARGEST_ROOT) ** 2


def _own(layer: SystemLayer, weights: Weights, z: np.ndarray) -> tuple[float, str]:
    if not layer.parameters:
        return 0.0, ""
    if isinstance(layer, AffineLayer | ConvolutionLayer | BatchNormLayer):
        return _of_rows(layer, weights, z)
    assert isinstance(layer, ResidualLayer)
    outputs = z.size // z[:1].size * int(np.prod(layer.shape_after(z.shape[1:])))
    if layer.parameters < outputs:
        return 0.0, ""
    small = (_widest(layer, z) * len(z)) ** 2 <= LARGEST_STACK
    if outputs <= LARGEST_DENSE and small:
        return smallest_eigenvalue(parameter_jacobian(layer, weights, z)), ""
    total = 0.0
    for one, part in zip(layer.branch, weights, strict=True):
        total = total * _onward(one, part, z)[0] + _own(one, part, z)[0]
        z = layer_value(one, part, z)
    return total, "its own term is bounded from its branch's layers"


def _of_rows(
    layer: AffineLayer | ConvolutionLayer | BatchNormLayer,
    weights: Weights,
    z: np.ndarray,
) -> tuple[float, str]:
    if not isinstance(layer, BatchNormLayer) and layer.parameterisation == "plain":
        layer = replace(layer, out=1)  # rows do not differ
        weights = {name: np.asarray(one)[:1] for name, one in weights.items()}
    features = layer.features if isinstance(layer, BatchNormLayer) else layer.out
    shape = layer.shape_after(z.shape[1:])
    count = len(z) * int(np.prod(shape[1:]))
    width = layer.parameters // features
    if width < count:
        return 0.0, ""
    if features * count * width > LARGEST_STACK:
        return 0.0, "its own term is too large to compute, and counted as zero"
    return smallest_eigenvalue(row_derivatives(layer, weights, z)), ""


def _onward(layer: SystemLayer, weights: Weights, z: np.ndarray) -> tuple[float, str]:
    if isinstance(layer, FlattenLayer):
        return 1.0, ""
    if isinstance(layer, NonlinearLayer):
        slope = nonlinearity_derivatives(layer.activation, z)[1]
        return float(np.abs(slope).min()) ** 2, ""
    if isinstance(layer, BatchNormLayer) and layer.statistics == "batch":
        return 0.0, ""
    into = int(np.prod(z.shape[1:]))
    out = int(np.prod(layer.shape_after(z.shape[1:])))
    if out > into:
        return 0.0, ""
    size = out * into
    if isinstance(layer, ResidualLayer):
        size = len(z) * _widest(layer, z) ** 2 * (len(z) if _mixes(layer) else 1)
    elif isinstance(layer, ConvolutionLayer):
        size = into * layer.columns * (out // layer.out)  # patches of every unit image
    if size > LARGEST_STACK:
        return 0.0, "its Jacobian is too large to compute, and counted as zero"
    return smallest_eigenvalue(input_jacobian(layer, weights, z)), ""


def _widest(layer: ResidualLayer, z: np.ndarray) -> int:
    """Return the largest number of features inside a block."""
    shape, most = z.shape[1:], int(np.prod(z.shape[1:]))
    for one in layer.branch:
        shape = one.shape_after(shape)
        most = max(most, int(np.prod(shape)))
    return most


def _mixes(layer: SystemLayer) -> bool:
    """Return whether the output of one sample depends on the others."""
    if isinstance(layer, ResidualLayer):
        return any(map(_mixes, layer.branch))
    return isinstance(layer, BatchNormLayer) and layer.statistics == "batch"
