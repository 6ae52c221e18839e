"""Any module and a batch to a reading, with the model left as found."""

from typing import TYPE_CHECKING

from theodolite.core import attach

if TYPE_CHECKING:
    from theodolite.instruments.batches import Batches, read_batches
    from theodolite.instruments.block_jacobian import BlockJacobian
    from theodolite.instruments.blockwise import Blocks, by_block
    from theodolite.instruments.conditions import condition, condition_of_operator
    from theodolite.instruments.dense_hessian import DenseHessian, hessian
    from theodolite.instruments.dense_spectrum import (
        Condition,
        Index,
        Spectrum,
        spectrum,
        spectrum_of,
        spectrum_of_operator,
    )
    from theodolite.instruments.density import (
        SpectralDensity,
        density_of,
        spectral_density,
    )
    from theodolite.instruments.diagonals import Diagonal, diagonal, diagonal_of
    from theodolite.instruments.extreme import (
        ExtremeEigenvalues,
        extreme_eigenvalues,
        extremes_of,
    )
    from theodolite.instruments.gauss_newton import GaussNewton
    from theodolite.instruments.hessian_operator import Hessian
    from theodolite.instruments.indices import index, index_of_operator
    from theodolite.instruments.normalisation import apply_norm_mode
    from theodolite.instruments.objective import (
        Batch,
        HalfSquareLoss,
        Loss,
        Reduction,
    )
    from theodolite.instruments.operator import MatrixOperator, Operator
    from theodolite.instruments.parameter_jacobian import Jacobian
    from theodolite.instruments.parameter_operator import ParameterOperator
    from theodolite.instruments.preservation import preserve
    from theodolite.instruments.sharpness import (
        SharpnessAlong,
        SharpnessProbe,
        sharpness_along,
    )
    from theodolite.instruments.singular import singular_values
    from theodolite.instruments.singular_reading import SingularValues
    from theodolite.instruments.tangent import TangentKernel
    from theodolite.instruments.tangent_gram import tangent_kernel
    from theodolite.instruments.tangent_reading import DenseTangentKernel
    from theodolite.instruments.traces import Trace, trace, trace_of

__all__ = [
    "Batch",
    "Batches",
    "BlockJacobian",
    "Blocks",
    "Condition",
    "DenseHessian",
    "DenseTangentKernel",
    "Diagonal",
    "ExtremeEigenvalues",
    "GaussNewton",
    "HalfSquareLoss",
    "Hessian",
    "Index",
    "Jacobian",
    "Loss",
    "MatrixOperator",
    "Operator",
    "ParameterOperator",
    "Reduction",
    "SharpnessAlong",
    "SharpnessProbe",
    "SingularValues",
    "SpectralDensity",
    "Spectrum",
    "TangentKernel",
    "Trace",
    "apply_norm_mode",
    "by_block",
    "condition",
    "condition_of_operator",
    "density_of",
    "diagonal",
    "diagonal_of",
    "extreme_eigenvalues",
    "extremes_of",
    "hessian",
    "index",
    "index_of_operator",
    "preserve",
    "read_batches",
    "sharpness_along",
    "singular_values",
    "spectral_density",
    "spectrum",
    "spectrum_of",
    "spectrum_of_operator",
    "tangent_kernel",
    "trace",
    "trace_of",
]

__getattr__, __dir__, _ = attach(
    __name__,
    {
        "block_jacobian": ["BlockJacobian"],
        "blockwise": ["Blocks", "by_block"],
        "conditions": ["condition", "condition_of_operator"],
        "density": ["SpectralDensity", "density_of", "spectral_density"],
        "diagonals": ["Diagonal", "diagonal", "diagonal_of"],
        "extreme": ["ExtremeEigenvalues", "extreme_eigenvalues", "extremes_of"],
        "indices": ["index", "index_of_operator"],
        "sharpness": ["SharpnessAlong", "SharpnessProbe", "sharpness_along"],
        "singular": ["singular_values"],
        "singular_reading": ["SingularValues"],
        "tangent": ["TangentKernel"],
        "tangent_gram": ["tangent_kernel"],
        "tangent_reading": ["DenseTangentKernel"],
        "traces": ["Trace", "trace", "trace_of"],
        "dense_hessian": ["DenseHessian", "hessian"],
        "normalisation": ["apply_norm_mode"],
        "objective": ["Batch", "HalfSquareLoss", "Loss", "Reduction"],
        "batches": ["Batches", "read_batches"],
        "gauss_newton": ["GaussNewton"],
        "hessian_operator": ["Hessian"],
        "parameter_jacobian": ["Jacobian"],
        "parameter_operator": ["ParameterOperator"],
        "operator": ["MatrixOperator", "Operator"],
        "preservation": ["preserve"],
        "dense_spectrum": [
            "Condition",
            "Index",
            "Spectrum",
            "spectrum",
            "spectrum_of",
            "spectrum_of_operator",
        ],
    },
)
