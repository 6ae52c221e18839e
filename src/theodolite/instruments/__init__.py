"""Any module and a batch to a reading, with the model left as found."""

from typing import TYPE_CHECKING

from theodolite.core import attach

if TYPE_CHECKING:
    from theodolite.instruments.curvature.blockwise import Blocks, by_block
    from theodolite.instruments.curvature.conditions import (
        condition,
        condition_of_operator,
    )
    from theodolite.instruments.curvature.dense import DenseHessian, hessian
    from theodolite.instruments.curvature.density import (
        SpectralDensity,
        density_of,
        spectral_density,
    )
    from theodolite.instruments.curvature.diagonals import (
        Diagonal,
        diagonal,
        diagonal_of,
    )
    from theodolite.instruments.curvature.extremes import (
        ExtremeEigenvalues,
        extreme_eigenvalues,
        extremes_of,
    )
    from theodolite.instruments.curvature.indices import index, index_of_operator
    from theodolite.instruments.curvature.sharpness import (
        SharpnessAlong,
        SharpnessProbe,
        sharpness_along,
    )
    from theodolite.instruments.curvature.spectra import (
        Condition,
        Index,
        Spectrum,
        spectrum,
        spectrum_of,
        spectrum_of_operator,
    )
    from theodolite.instruments.curvature.traces import Trace, trace, trace_of
    from theodolite.instruments.model.objective import (
        Batch,
        HalfSquareLoss,
        Loss,
        Reduction,
    )
    from theodolite.instruments.model.preservation import preserve
    from theodolite.instruments.norms.normalisation import apply_norm_mode
    from theodolite.instruments.operators.block_jacobian import BlockJacobian
    from theodolite.instruments.operators.gauss_newton import GaussNewton
    from theodolite.instruments.operators.jacobian import Jacobian
    from theodolite.instruments.operators.loss_hessian import Hessian
    from theodolite.instruments.operators.operator import MatrixOperator, Operator
    from theodolite.instruments.operators.parameter_operator import ParameterOperator
    from theodolite.instruments.operators.tangent import TangentKernel
    from theodolite.instruments.passes.batches import Batches, read_batches
    from theodolite.instruments.singular.reading import SingularValues
    from theodolite.instruments.singular.values import singular_values
    from theodolite.instruments.tangents.kernel import tangent_kernel
    from theodolite.instruments.tangents.reading import DenseTangentKernel

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
        "curvature.blockwise": ["Blocks", "by_block"],
        "curvature.conditions": ["condition", "condition_of_operator"],
        "curvature.dense": ["DenseHessian", "hessian"],
        "curvature.density": ["SpectralDensity", "density_of", "spectral_density"],
        "curvature.diagonals": ["Diagonal", "diagonal", "diagonal_of"],
        "curvature.extremes": [
            "ExtremeEigenvalues",
            "extreme_eigenvalues",
            "extremes_of",
        ],
        "curvature.indices": ["index", "index_of_operator"],
        "curvature.sharpness": ["SharpnessAlong", "SharpnessProbe", "sharpness_along"],
        "curvature.spectra": [
            "Condition",
            "Index",
            "Spectrum",
            "spectrum",
            "spectrum_of",
            "spectrum_of_operator",
        ],
        "curvature.traces": ["Trace", "trace", "trace_of"],
        "model.objective": ["Batch", "HalfSquareLoss", "Loss", "Reduction"],
        "model.preservation": ["preserve"],
        "norms.normalisation": ["apply_norm_mode"],
        "operators.block_jacobian": ["BlockJacobian"],
        "operators.gauss_newton": ["GaussNewton"],
        "operators.jacobian": ["Jacobian"],
        "operators.loss_hessian": ["Hessian"],
        "operators.operator": ["MatrixOperator", "Operator"],
        "operators.parameter_operator": ["ParameterOperator"],
        "operators.tangent": ["TangentKernel"],
        "passes.batches": ["Batches", "read_batches"],
        "singular.reading": ["SingularValues"],
        "singular.values": ["singular_values"],
        "tangents.kernel": ["tangent_kernel"],
        "tangents.reading": ["DenseTangentKernel"],
    },
)
