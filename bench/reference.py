"""Products and eigenvalues in float64 by plain double backward, the common measure."""

import copy

import numpy as np
import torch
from scipy.sparse import linalg
from torch import nn

from bench.networks import Data

_LOSS = nn.CrossEntropyLoss()


class DoubleBackward:
    """The Hessian of a copy, by default in float64, with its graph kept."""

    def __init__(
        self, model: nn.Module, data: Data, dtype: torch.dtype = torch.float64
    ) -> None:
        model = copy.deepcopy(model).to(dtype)
        self._dtype, self._parameters = dtype, list(model.parameters())
        loss = _LOSS(model(data[0].to(dtype)), data[1])
        self._gradient = torch.autograd.grad(loss, self._parameters, create_graph=True)
        self.size = sum(p.numel() for p in self._parameters)

    def product(self, vector: np.ndarray) -> np.ndarray:
        """Multiply one vector."""
        flat = torch.as_tensor(vector.reshape(-1), dtype=self._dtype)
        parts = flat.split([p.numel() for p in self._parameters])
        shaped = [
            v.reshape(p.shape) for v, p in zip(parts, self._parameters, strict=True)
        ]
        product = torch.autograd.grad(
            self._gradient, self._parameters, shaped, retain_graph=True
        )
        return torch.cat([part.reshape(-1) for part in product]).numpy()


def leading_eigenvalues(model: nn.Module, data: Data, k: int) -> np.ndarray:
    """Return the k eigenvalues of largest magnitude, to better than 1e-5.

    Products in float64 are slow. ARPACK finds vectors by products in float32, and one
    in float64 with each gives their Rayleigh quotients, off by the square of a residual
    over the gap to the next eigenvalue.
    """
    coarse = DoubleBackward(model, data, torch.float32)
    operator = linalg.LinearOperator(
        (coarse.size, coarse.size), matvec=coarse.product, dtype=np.float32
    )
    start = np.random.default_rng(7).standard_normal(coarse.size).astype(np.float32)
    settings = {"k": k, "ncv": 6 * k, "which": "LM", "tol": 1e-5, "v0": start}
    _, vectors = linalg.eigsh(operator, **settings)
    basis, _ = np.linalg.qr(vectors.astype(np.float64))
    fine = DoubleBackward(model, data)
    products = np.stack([fine.product(column) for column in basis.T], axis=1)
    values, turns = np.linalg.eigh(basis.T @ products)
    apart = np.linalg.norm(products @ turns - basis @ turns * values, axis=0)
    if np.max(apart / np.abs(values)) > 1e-3:
        raise SystemExit(f"the reference has residuals of up to {apart.max():.1e}")
    return values[np.argsort(-np.abs(values))]
