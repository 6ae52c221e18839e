"""How each peer is asked for Hessians and their eigenvalues, as its documents say."""

from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.networks import Data
from bench.peers import peer

LOSS = nn.CrossEntropyLoss()


def pyhessian(model: nn.Module, batches: list[Data]) -> Any:
    """Return the peer's object; of one batch it keeps the graph of the gradient."""
    feed = {"data": batches[0]} if len(batches) == 1 else {"dataloader": batches}
    return peer("pyhessian").hessian(model, LOSS, cuda=False, **feed)


def eigenthings(model: nn.Module, batches: list[Data], **options: Any) -> Any:
    """Return the peer's Hessian operator."""
    they = peer("hessian_eigenthings")
    loss = they.supervised_loss(LOSS)
    return they.HessianOperator(model, batches, loss, **options)


def curvlinops(model: nn.Module, batches: list[Data], **options: Any) -> Any:
    """Return the peer's Hessian operator."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    make = peer("curvlinops").HessianLinearOperator
    return make(model, LOSS, parameters, batches, **options)


def backpack_trace(model: nn.Module, batch: Data) -> tuple[float, float]:
    """Return the sum of the peer's exact diagonal, and that it states no error."""
    they = peer("backpack")
    outputs = they.extend(model)(batch[0])
    loss = they.extend(nn.CrossEntropyLoss())(outputs, batch[1])
    with they.backpack(they.extensions.DiagHessian()):
        loss.backward()
    return sum(float(p.diag_h.sum()) for p in model.parameters()), 0.0


def cockpit_top(model: nn.Module, batch: Data, power: bool) -> tuple[float, float]:
    """Return the peer's largest eigenvalue in a step of training of rate 0."""
    they, (x, y) = peer("cockpit"), batch
    largest = they.quantities.HessMaxEV(lambda step: True, use_power=power)
    cockpit = they.Cockpit(model.parameters(), quantities=[largest])
    outputs = model(x)
    loss, each = LOSS(outputs, y), nn.functional.cross_entropy
    info = {
        "batch_size": len(x),
        "individual_losses": each(outputs, y, reduction="none"),
        "loss": loss,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.0),
    }
    with cockpit(0, info=info):
        loss.backward(create_graph=cockpit.create_graph(0))
    return float(largest.get_output()[0]), 0.0


def eigsh(
    operator: Any, dtype: type = np.float64, **options: Any
) -> tuple[np.ndarray, int]:
    """Return eigenvalues by ARPACK, as curvlinops advises, and the products spent."""
    from scipy.sparse import linalg

    inner, count = operator.to_scipy(dtype=dtype), 0

    def product(v: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        return inner @ v

    counted = linalg.LinearOperator(inner.shape, matvec=product, dtype=dtype)
    start = np.random.default_rng(0).standard_normal(inner.shape[0]).astype(dtype)
    values = linalg.eigsh(counted, v0=start, return_eigenvectors=False, **options)
    return values, count


@contextmanager
def counted_products():
    """Count PyHessian's products, in a list of one number."""
    home = import_module("pyhessian.hessian")
    original, count = home.hessian_vector_product, [0]

    def product(*arguments: Any) -> Any:
        count[0] += 1
        return original(*arguments)

    home.hessian_vector_product = product
    try:
        yield count
    finally:
        home.hessian_vector_product = original
