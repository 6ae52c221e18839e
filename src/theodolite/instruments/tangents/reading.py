"""What a whole tangent kernel comes as, with its certificate."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from theodolite.core import MeasurementError, Reading, Status, condition_of


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseTangentKernel(Reading):
    r"""The tangent kernel $DF\,DF^\top$ of some data, and its ends.

    Attributes:
        matrix: Rows are (sample, output), samples slow; or samples alone, summed over
            equal outputs, if traced.
        matrix_error: Rounding of an entry at most.
        largest: Largest eigenvalue.
        smallest: Smallest eigenvalue.
        eigenvalue_error: How far the true one is at most: that of a backward stable
            eigensolver plus the rounding of the matrix.
        condition: Their ratio; infinite and ``status`` ROUNDING where the smallest
            cannot be told from 0.
        peak_bytes: Memory forecast for the call, which it keeps within.
        samples: Number of samples.
        outputs: Outputs of one sample.
        traced: Whether the matrix is summed over equal outputs.
    """

    dims: ClassVar = {
        "matrix": ("row", "column"),
        "matrix_error": (),
        "largest": (),
        "smallest": (),
        "eigenvalue_error": (),
        "condition": (),
        "condition_error": (),
        "peak_bytes": (),
    }
    error_of: ClassVar = {
        "matrix": "matrix_error",
        "largest": "eigenvalue_error",
        "smallest": "eigenvalue_error",
        "condition": "condition_error",
    }

    matrix: np.ndarray
    matrix_error: float
    largest: float
    smallest: float
    eigenvalue_error: float
    condition: float
    condition_error: float
    peak_bytes: int
    samples: int
    outputs: int
    traced: bool


def spectrum_ends(
    matrix: Tensor, rounding: float
) -> tuple[tuple[float, float, float, float, float], Status]:
    r"""Return the ends of the spectrum, their error and the condition number.

    Rounding moves $JJ^\top$ by $\varepsilon \|J\|_F^2 = \varepsilon \operatorname{tr}K$
    in norm, up to a factor near 1, and the eigensolver adds $\varepsilon n
    \lambda_{\max}$.
    """
    values = torch.linalg.eigvalsh(matrix).cpu().numpy()
    largest, smallest = float(values[-1]), float(values[0])
    error = rounding + float(np.finfo(np.float64).eps) * len(values) * largest
    if smallest < -error:
        raise MeasurementError(
            f"the tangent kernel has an eigenvalue {smallest:.2e}, below the "
            f"-{error:.2e} that rounding explains, though it is a Gram matrix: look "
            "for changing state in the model"
        )
    found = condition_of(np.maximum(values, 0), quantile=0.0, rounding=error)
    status = Status.EXACT if found.resolved else Status.ROUNDING
    ratio = found.ratio if found.resolved else float("inf")
    return (largest, smallest, error, ratio, found.error), status
