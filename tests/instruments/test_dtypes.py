"""Whatever of instruments takes numbers takes every real type, or says which."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.dtypes import RANGES
from theodolite import instruments
from theodolite.core import MeasurementError

LOSS = {"loss": nn.MSELoss()}
# What measures a model on a batch, with what else it needs.
ON_MODELS = {
    "trace": LOSS, "diagonal": LOSS, "spectrum": LOSS, "hessian": LOSS,
    "spectral_density": LOSS, "extreme_eigenvalues": LOSS, "index": LOSS,
    "condition": LOSS, "sharpness_along": LOSS, "tangent_kernel": {},
    "singular_values": {"block": "0"}, "Hessian": LOSS, "GaussNewton": LOSS,
    "Fisher": LOSS, "EmpiricalFisher": LOSS, "Jacobian": {}, "TangentKernel": {},
    "BlockJacobian": {"block": "0"},
    "collapse": {}, "classifier_norms": {},
}  # fmt: skip
# What reads an operator, hence a matrix.
ON_MATRICES = {
    "trace": "trace", "diagonal": "diagonal", "extreme_eigenvalues": "eigenvalues",
    "spectral_density": "density", "index": "index",
    "condition": "ratio", "spectrum": "eigenvalues",
}  # fmt: skip
# Readings, types, bases, and what takes models, readings or batches as they are.
OTHERS = {
    "Batch", "Batches", "Blocks", "ClassifierNorms", "Collapse", "CollapseMeter",
    "Condition", "DenseHessian", "DenseTangentKernel",
    "Diagonal", "ExtremeEigenvalues", "HalfSquareLoss", "Index", "Loss",
    "MatrixOperator", "Operator", "ParameterOperator", "Reduction", "SharpnessAlong",
    "SharpnessProbe", "SingularValues", "SpectralDensity", "Spectrum", "Trace",
    "CriticalPoints", "critical_points",  # of energies in float64 alone
    "apply_norm_mode", "by_block", "preserve", "preserve_process",
    "norm_layers_as_is", "Draws",
    "read_batches", "spectrum_of", "Identity", "Listener",
    "Outputs", "checked_outputs", "opened", "pair_of", "run_model", "samples_in",
    "slice_batch", "tensors_in", "as_loss", "ProgressUpdate", "show_progress",
    "counted", "progress", "loss_of_batch", "map_tensors",
    "evaluate", "join_batches", "full_precision", "measuring", "reseed",
    "MemoryForecast", "memory_forecast", "Problem", "Team", "share_of",
}  # fmt: skip
X = torch.randint(0, 2, (4, 3))
# Not what a model of float32 weights was made for.
FOREIGN = {
    "uint8": X.to(torch.uint8), "int8": X.to(torch.int8), "int64": X,
    "bool": X.bool(), "float16": X.half(), "float64": X.double(),
    "complex": X.to(torch.complex64), "array": X.numpy().astype(np.float32),
    "list": X.float().tolist(),
}  # fmt: skip


def test_every_public_name_is_in_the_sweep():
    assert set(instruments.__all__) == {*ON_MODELS, *ON_MATRICES, *OTHERS}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("name", ON_MODELS)
def test_inputs_that_a_model_does_not_take_get_a_sentence(name, kind):
    model = nn.Sequential(nn.Linear(3, 2))
    batch = FOREIGN[kind], torch.zeros(4, 2)
    with pytest.raises(MeasurementError, match=r"does not take|takes real") as error:
        getattr(instruments, name)(model, batch, norm_mode="eval", **ON_MODELS[name])
    assert "\n" not in str(error.value)


def small(dtype):
    """A symmetric matrix of numbers that every type holds."""
    low = 0 if np.dtype(dtype).kind in "bu" else -1
    return np.array([[1, 0, 0], [0, low, 1], [0, 1, 1]]).astype(dtype)


@pytest.mark.parametrize("dtype", [name for name in RANGES if name != "longdouble"])
@pytest.mark.parametrize("name", ON_MATRICES)
def test_matrices_of_every_type_are_read_as_those_of_float64(name, dtype):
    read, field = getattr(instruments, name), ON_MATRICES[name]
    matrix = small(dtype)
    truth = read(_operator(matrix.astype(np.float64)))
    forms = [matrix, matrix.tolist()]
    if np.dtype(dtype).isnative and dtype != "float16":
        forms.append(torch.from_numpy(matrix))
    for form in forms:
        found = read(_operator(form))
        tolerance = 1e-5 if dtype in ("float32", ">f4") else 1e-12
        np.testing.assert_allclose(
            getattr(found, field), getattr(truth, field), rtol=tolerance, atol=tolerance
        )


def _operator(matrix):
    return instruments.MatrixOperator(matrix, symmetric=True)


@pytest.mark.parametrize(
    "matrix",
    [torch.eye(2, dtype=torch.complex64), [["a", "b"]], [[1, 2], [3]], torch.ones(3)],
)
def test_what_is_no_matrix_of_real_numbers_is_refused(matrix):
    with pytest.raises(MeasurementError, match="the matrix"):
        _operator(matrix)
