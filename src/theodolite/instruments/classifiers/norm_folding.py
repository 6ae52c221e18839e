r"""Fold norms into the linear layers next to them.

Batch norm with constant statistics is $\gamma (z - m)/\sqrt{v + \epsilon} + \beta$.
With the layer before it, $z = Wx + b$, it is one layer with rows
$\frac{\gamma_i}{\sqrt{v_i + \epsilon}} W_i$; with the layer after it, columns are
scaled. Its shift goes into biases and does not count in a norm.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core import NormMode

from ..norms.full_statistics import Moments
from .layer_trace import LinearCall, NormSeen


@dataclass(kw_only=True, eq=False)
class FoldedLayer:
    """A linear layer, with norms folded into it.

    Attributes:
        name: Name of the module, with a number for each further application.
        raw: Its weights as a matrix in float64, one row per output channel.
        matrix: The same with norms folded in.
        folded: Whether a norm was folded in.
        invariance: 2 if each row may be scaled without a change, since a norm of
            channels follows; 1 if only all rows together may; 0 if neither was found.
    """

    name: str
    raw: Tensor
    matrix: Tensor
    folded: bool = False
    invariance: int = 0


def fold(
    layers: Sequence[LinearCall],
    norms: Sequence[NormSeen],
    moments: Sequence[Moments],
    *,
    mode: NormMode,
    several: bool,
) -> tuple[list[FoldedLayer], list[str]]:
    """Fold norms into layers; return the layers, and one note per norm.

    Args:
        layers: Linear layers in order.
        norms: Norms in order.
        moments: Moments of the inputs of norms that used batch statistics, in order.
        mode: Statistics that those norms used.
        several: Whether there are several batches.
    """
    made = dict(zip(map(id, layers), _named(layers), strict=True))
    notes = []
    for norm in norms:
        if norm.behind is not None and norm.behind.uses == 1:
            rows = norm.kind in ("batch norm", "instance norm")
            made[id(norm.behind)].invariance = 2 if rows else 1
        target, why = _target(norm, layers, mode, several)
        if target is None:
            notes.append(f"{norm.kind} {norm.name!r} not folded: {why}")
            continue
        layer, scale = made[id(target)], _scale(norm, moments)
        if target is norm.before:
            layer.matrix = layer.matrix * scale[:, None]
        else:
            layer.matrix = _by_input(target, layer.matrix, scale)
        layer.folded = True
        notes.append(f"{norm.kind} {norm.name!r} folded into {layer.name!r}{why}")
    return list(made.values()), notes


def _target(
    norm: NormSeen, layers: Sequence[LinearCall], mode: NormMode, several: bool
) -> tuple[LinearCall | None, str]:
    """Return the layer to fold a norm into, and a note; or None, and the reason."""
    if norm.kind != "batch norm":
        return None, "it has statistics of its own for each sample"
    if norm.place is not None and mode.by_batch and several:
        return None, "each batch has statistics of its own"
    if norm.before is not None and norm.before.uses == 1:
        return norm.before, ""
    after = [layer for layer in layers if layer.after is norm]
    if norm.uses == 1 and len(after) == 1:
        edge = ", but for its shift where zeros are padded" if after[0].padded else ""
        return after[0], edge
    if norm.before is not None:
        return None, f"the output of {norm.before.name!r} is used elsewhere too"
    return None, "no linear layer stands next to it"


def _scale(norm: NormSeen, moments: Sequence[Moments]) -> Tensor:
    given = norm.arguments
    if norm.place is None:
        variance = given["running_var"]
    else:
        variance = moments[norm.place].variance
    scale = (variance.double() + given["eps"]).rsqrt()
    weight = given["weight"]
    return scale if weight is None else scale * weight.detach().double()


def _named(layers: Sequence[LinearCall]) -> list[FoldedLayer]:
    counts: dict[str, int] = {}
    folded_layers = []
    for layer in layers:
        counts[layer.name] = counts.get(layer.name, 0) + 1
        again = f" #{counts[layer.name]}" if counts[layer.name] > 1 else ""
        matrix = _matrix(layer)
        name = (layer.name or "(model)") + again
        folded_layers.append(FoldedLayer(name=name, raw=matrix, matrix=matrix))
    return folded_layers


def _matrix(layer: LinearCall) -> Tensor:
    """Return weights as a matrix, one row per output channel."""
    weight = layer.weight.double()
    if not layer.transposed:
        return weight.flatten(1)
    groups = layer.groups
    inner = weight.unflatten(0, (groups, -1)).transpose(1, 2)
    return inner.reshape(groups * weight.shape[1], -1)


def _by_input(layer: LinearCall, matrix: Tensor, scale: Tensor) -> Tensor:
    """Scale columns by the input channel that they read."""
    rows, columns = matrix.shape
    groups = layer.groups
    inner = scale.reshape(groups, -1)  # channels of each group
    taps = columns // inner.shape[1]
    factor = inner.repeat_interleave(taps, dim=1)
    return (matrix.reshape(groups, rows // groups, columns) * factor[:, None]).reshape(
        rows, columns
    )


def product_of(norms: Sequence[float]) -> float:
    """Return the logarithm of a product, minus infinity if a factor is 0."""
    logs = torch.tensor(
        [float(norm) for norm in norms], dtype=torch.float64, device="cpu"
    ).log()
    return float(logs.sum()) if len(logs) else 0.0
