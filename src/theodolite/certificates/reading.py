"""The result of :func:`certificate`."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from theodolite.core import (
    Dims,
    Reading,
    Rows,
    Scalar,
    headline,
    metadata_line,
    quantity_line,
)

from .conditions import failing


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate(Reading):
    r"""Guaranteed bounds of a loss $\ell = \gamma \circ F$, next to measured values.

    Attributes:
        smoothness: $\beta$, a Lipschitz constant of $\nabla\ell$ on the parameters
            that the radius allows; infinite where none is known.
        step: A step of gradient descent that lowers the loss by at least
            $\frac\eta2\|\nabla\ell\|^2$: $1/\beta$, or less if it would leave the
            radius; any step below $2/\beta$ lowers the loss.
        derivative: Bound of $\|DF\|$.
        kernel_bound: Lower bound of $\lambda(DF)$ at these weights, from the layers.
        kernel_smallest: $\lambda(DF)$, the smallest eigenvalue of the tangent kernel.
        kernel_error: Largest distance of the true eigenvalue.
        own: $\lambda(Df_l)$ of each layer.
        onward: $\lambda(Jf_l)$ of each layer.
        terms: Contribution of each layer to the bound.
        loss: $\ell$ at these weights.
        floor: Lower bound of $\gamma$ on all possible outputs.
        ratio: $\|\nabla\ell\|^2 / (\ell - \text{floor})$ at these weights.
        ratio_error: Its rounding.
        polyak: $\mu$ of the cost on those outputs.
        ratio_bound: $\mu$ times the bound of $\lambda(DF)$; never above the ratio.
        radius: Distance from these weights, per layer, within which $\beta$ holds.
        names: The layers' names in the model.
        hypotheses: For theorems 4.5, 4.7 and 5.1, one row each with ``theorem``,
            ``hypothesis``, ``holds`` and ``why``.
        reasons: Why a bound is infinite, or a layer's term is itself a bound.
    """

    smoothness: Scalar
    step: Scalar
    derivative: Scalar
    kernel_bound: Scalar
    kernel_smallest: Annotated[float, Dims(error="kernel_error")]
    kernel_error: Scalar
    own: Annotated[np.ndarray, Dims("layer")]
    onward: Annotated[np.ndarray, Dims("layer")]
    terms: Annotated[np.ndarray, Dims("layer")]
    loss: Scalar
    floor: Scalar
    ratio: Scalar
    ratio_error: Scalar
    polyak: Scalar
    ratio_bound: Scalar
    radius: float
    names: tuple[str, ...]
    hypotheses: Rows
    reasons: tuple[str, ...]

    def coordinates(self) -> dict[str, list[Any]]:
        """Return the layers' names."""
        return {"layer": list(self.names)}

    def applies(self, theorem: str) -> bool:
        """Return whether all hypotheses of a theorem, such as ``"4.7"``, hold.

        Theorem 5.1 also needs those of 4.5 and 4.7.
        """
        return not failing(theorem, self.hypotheses)

    def summary_lines(self) -> list[str]:
        """Return the numbers, and each hypothesis that fails."""
        shown = "smoothness step kernel_bound kernel_smallest terms ratio ratio_bound"
        lines = [f"  {name:<15}  {quantity_line(self, name)}" for name in shown.split()]
        lines += [f"  note: {reason}" for reason in self.reasons[:3]]
        failing = [row for row in self.hypotheses if not row["holds"]]
        lines += [f"  {row['theorem']} fails: {row['why']}" for row in failing]
        return [headline(self), *lines, metadata_line(self)]
