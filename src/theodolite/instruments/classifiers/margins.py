r"""Margins of a classifier's outputs.

With one output and $y = \pm 1$ the margin is $y g$; with several, the output of the own
class less the largest of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core import MeasurementError


@dataclass(frozen=True, kw_only=True, eq=False)
class Margins:
    r"""Outputs and margins of some samples, in float64.

    Attributes:
        own: The output, or that of the own class.
        margin: The margin.
        labels: Places of classes.
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
        """Return those of all samples."""
        names = ("own", "margin", "labels", "weights")
        whole = {n: torch.cat([getattr(part, n) for part in parts]) for n in names}
        return cls(
            **whole,
            aligned=sum(part.aligned for part in parts),
            square=sum(part.square for part in parts),
        )


def margins_of(outputs: Tensor, labels: Tensor, weights: Tensor) -> Margins:
    """Return the margins of outputs, a row a sample.

    Args:
        outputs: Classes on the last axis, or one number a sample.
        labels: Places of classes, one a sample.
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
