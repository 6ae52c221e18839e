"""Products and eigenvalues in float64 by plain double backward, the common measure."""

import copy

import numpy as np
import torch
from scipy.sparse import linalg
from torch import nn

from bench.networks import Data

_LOSS = nn.CrossEntropyLoss()


class DoubleBackward:
    """The Hessian of a float64 copy, in the modes found, with its graph kept."""

    def __init__(self, model: nn.Module, data: Data) -> None:
        model = copy.deepcopy(model).double()
        self._parameters = list(model.parameters())
        loss = _LOSS(model(data[0].double()), data[1])
        self._gradient = torch.autograd.grad(loss, self._parameters, create_graph=True)
        self.size = sum(p.numel() for p in self._parameters)

    def product(self, vector: np.ndarray) -> np.ndarray:
        """Multiply one vector."""
        flat = torch.as_tensor(vector.reshape(-1))
        parts = flat.split([p.numel() for p in self._parameters])
        shaped = [
            v.reshape(p.shape) for v, p in zip(parts, self._parameters, strict=True)
        ]
        found = torch.autograd.grad(
            self._gradient, self._parameters, shaped, retain_graph=True
        )
        return torch.cat([part.reshape(-1) for part in found]).numpy()


def leading_eigenvalues(model: nn.Module, data: Data, k: int) -> np.ndarray:
    """Return the k eigenvalues of largest magnitude, by ARPACK to 1e-5.

    Products in float64 are slow; a large basis takes fewer of them than ARPACK's own.
    """
    hessian = DoubleBackward(model, data)
    operator = linalg.LinearOperator(
        (hessian.size, hessian.size), matvec=hessian.product, dtype=np.float64
    )
    start = np.random.default_rng(7).standard_normal(hessian.size)
    values = linalg.eigsh(
        operator,
        k=k,
        ncv=6 * k,
        which="LM",
        tol=1e-5,
        v0=start,
        return_eigenvectors=False,
    )
    return values[np.argsort(-np.abs(values))]
