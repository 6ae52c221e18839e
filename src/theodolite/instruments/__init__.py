"""Any module and a batch to a reading, with the model left as found."""

from typing import TYPE_CHECKING

from theodolite.core import attach

if TYPE_CHECKING:
    from theodolite.instruments.dense_hessian import DenseHessian, hessian
    from theodolite.instruments.dense_spectrum import (
        Condition,
        Index,
        Spectrum,
        condition,
        index,
        spectrum,
        spectrum_of,
    )
    from theodolite.instruments.normalisation import apply_norm_mode
    from theodolite.instruments.objective import Batch, HalfSquareLoss, Loss
    from theodolite.instruments.operator import MatrixOperator, Operator
    from theodolite.instruments.preservation import preserve

__all__ = [
    "Batch",
    "Condition",
    "DenseHessian",
    "HalfSquareLoss",
    "Index",
    "Loss",
    "MatrixOperator",
    "Operator",
    "Spectrum",
    "apply_norm_mode",
    "condition",
    "hessian",
    "index",
    "preserve",
    "spectrum",
    "spectrum_of",
]

__getattr__, __dir__, _ = attach(
    __name__,
    {
        "dense_hessian": ["DenseHessian", "hessian"],
        "normalisation": ["apply_norm_mode"],
        "objective": ["Batch", "HalfSquareLoss", "Loss"],
        "operator": ["MatrixOperator", "Operator"],
        "preservation": ["preserve"],
        "dense_spectrum": [
            "Condition",
            "Index",
            "Spectrum",
            "condition",
            "index",
            "spectrum",
            "spectrum_of",
        ],
    },
)
