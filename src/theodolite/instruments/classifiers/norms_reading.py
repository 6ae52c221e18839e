"""The result of norms and margins of a classifier, and the margins of outputs."""

from collections.abc import Sequence
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
    headline,
    metadata_line,
    quantity_line,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Margins:
    r"""Outputs and margins of some samples, in float64.

    Attributes:
        own: The output, or the output of the sample's class.
        margin: The margin.
        labels: Indices of classes.
        weights: Weights of samples.
        aligned: $\sum \langle y, g \rangle$, with $y$ = ±1 or one-hot.
        square: $\sum \|g\|^2$.
    """

    own: Tensor
    margin: Tensor
    labels: Tensor
    weights: Tensor
    aligned: float
    square: float

    @classmethod
    def joined(cls, parts: Sequence["Margins"]) -> "Margins":
        """Return the margins of all samples together."""
        names = ("own", "margin", "labels", "weights")
        whole = {n: torch.cat([getattr(part, n) for part in parts]) for n in names}
        return cls(
            **whole,
            aligned=sum(part.aligned for part in parts),
            square=sum(part.square for part in parts),
        )


def margins_of(outputs: Tensor, labels: Tensor, weights: Tensor) -> Margins:
    """Return the margins of outputs, one row per sample.

    Args:
        outputs: Classes on the last axis, or one number per sample.
        labels: Indices of classes, one per sample.
        weights: Weights of samples.
    """
    rows = outputs.detach().double().cpu()
    rows = rows.reshape(len(labels), -1) if rows.numel() else rows.reshape(0, 1)
    if not bool(torch.isfinite(rows).all()):
        raise MeasurementError(
            "the outputs hold NaN or infinity: check the data and the weights"
        )
    if rows.shape[1] == 1:
        own, signs = rows[:, 0], 2.0 * labels - 1
        margin, aligned = signs * own, signs * own
    else:
        own = rows.gather(1, labels[:, None]).squeeze(1)
        others = rows.scatter(1, labels[:, None], -torch.inf).amax(1)
        margin, aligned = own - others, own
    return Margins(
        own=own,
        margin=margin,
        labels=labels,
        weights=weights,
        aligned=float(aligned @ weights),
        square=float(rows.square().sum(1) @ weights),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierNorms(Reading):
    r"""Norms of a classifier's layers, and its outputs divided by their product.

    A layer is a linear or convolutional one as it is applied, so that one applied twice
    counts twice; $W_k$ are its weights, one row per output channel, with batch norms
    folded in. Then $\rho_k = \|W_k\|_F$, $V_k = W_k/\rho_k$, $\rho = \prod_k \rho_k$
    and $f = g/\rho$ with $g$ the outputs: for a chain of such layers and ReLUs without
    biases $f$ is the network of the $V_k$, else it is so by definition.

    Attributes:
        layer_norms: $\rho_k$.
        raw_norms: The same without norms folded in.
        row_norms: Norms of the rows of $W_k$, all layers one after the other.
        row_layers: Index of the layer that each row belongs to.
        rho: $\rho$, infinite where it overflows.
        log_rho: $\ln\rho$.
        log_rho_raw: $\ln$ of the product of the raw norms.
        log_rho_varying: $\ln$ of the product over layers whose scale has an effect: the
            convention $\rho_k = 1$ for layers that a norm follows.
        folded: Whether a norm was folded into a layer.
        invariance: 2 if every row, 1 if only all rows together may be scaled by a
            positive number with no change except by $\epsilon$ (a norm follows, whose
            statistics scale too; with an activation in between, the bias is scaled as
            well); 0 if neither was found.
        scaled_off: $\|g(2W_k) - g\|/\|g\|$ on some samples: 0 if the scale of a layer
            has no effect under this norm mode. NaN if it was not tried.
        doubled_off: $\|g(2W_k) - 2g\|/\|g\|$: 0 if outputs scale with the layer.
        f: Outputs divided by $\rho$; with several, the output of the sample's class.
        margins: $y f$ for one output, $y = \pm 1$; else the output of the sample's
            class minus the largest other one, divided by $\rho$.
        labels: Classes of the samples, from 0 up.
        equilibrium: $\sum \langle y, f\rangle / \sum \|f\|^2$, with $y$ = ±1 or
            one-hot: the $\rho$ at which the square loss is least along it.
        equilibrium_ratio: That divided by $\rho$: 1 in equilibrium without
            weight decay, $1 + \lambda/\sum\|f\|^2$ with it.
        mean_margin: Mean of the margins.
        least_margin: Smallest margin.
        error_rate: Share of samples with a margin of 0 or less.
        separable: Whether all margins are positive.
        average_separable: Whether the sum of margins is positive.
        names: Names of the layers in order.
        notes: For each norm, whether and where it was folded.
        left_out: Parameters of two or more axes that belong to no such layer.
        directions: $V_k$, if requested.
    """

    layer_norms: Annotated[np.ndarray, Dims("layer", error="layer_norm_error")]
    layer_norm_error: Scalar
    raw_norms: Annotated[np.ndarray, Dims("layer", error="layer_norm_error")]
    row_norms: Annotated[np.ndarray, Dims("row", error="layer_norm_error")]
    row_layers: Annotated[np.ndarray, Dims("row")]
    rho: Scalar
    rho_error: Scalar
    log_rho: Scalar
    log_rho_raw: Annotated[float, Dims(error="log_rho_error")]
    log_rho_varying: Annotated[float, Dims(error="log_rho_error")]
    log_rho_error: Scalar
    folded: Annotated[np.ndarray, Dims("layer")]
    invariance: Annotated[np.ndarray, Dims("layer")]
    scaled_off: Annotated[np.ndarray, Dims("layer")]
    doubled_off: Annotated[np.ndarray, Dims("layer")]
    f: Annotated[np.ndarray, Dims("sample")]
    margins: Annotated[np.ndarray, Dims("sample", error="f_error")]
    f_error: Scalar
    labels: Annotated[np.ndarray, Dims("sample")]
    equilibrium: Scalar
    equilibrium_error: Scalar
    equilibrium_ratio: Scalar
    equilibrium_ratio_error: Scalar
    mean_margin: Annotated[float, Dims(error="f_error")]
    least_margin: Annotated[float, Dims(error="f_error")]
    error_rate: Scalar
    error_rate_error: Scalar
    separable: Annotated[bool, Dims()]
    average_separable: Annotated[bool, Dims()]
    names: tuple[str, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    directions: tuple[np.ndarray, ...] = ()

    def coordinates(self) -> dict[str, list[Any]]:
        """Label layers by their names."""
        coordinates: dict[str, list[Any]] = {"layer": list(self.names)}
        for dim, size in (("row", len(self.row_norms)), ("sample", len(self.f))):
            coordinates[dim] = list(range(size))
        return coordinates

    def summary_lines(self) -> list[str]:
        """Return the numbers, and which norms and parameters were left out."""
        errors = set(self.error_of.values())
        names = [name for name in self.dims if name not in errors]
        brief = ("row_layers", "labels", "separable", "average_separable")
        lines = [
            f"  {name:<17}  {quantity_line(self, name)}"
            for name in names
            if name not in brief
        ]
        yes = [name for name in brief[2:] if getattr(self, name)]
        no = [f"not {name}" for name in brief[2:] if name not in yes]
        lines.append(f"  {', '.join([*yes, *no])}; and {', '.join(brief[:2])}")
        kept = sum("not folded" in note for note in self.notes)
        if kept or self.left_out:
            lines.append(
                f"  {kept} norms not folded, {len(self.left_out)} parameters left out"
            )
        return [headline(self), *lines, metadata_line(self)]
