"""The gradient of the loss on some samples."""

import torch
from torch import Tensor

from theodolite.core import Exclusive
from theodolite.instruments import (
    Batch,
    Problem,
    apply_norm_mode,
    evaluate,
    opened,
    run_model,
)


def settle(device: torch.device) -> None:
    """Wait until all kernels on a device have finished, so that timings are correct."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def flat_gradient(problem: Problem, batch: Batch) -> Tensor:
    """Return the gradient by all parameters that require one, as one vector."""
    model = problem.model
    with Exclusive(), opened(model, careful=False) as before:
        leaves = [p for p in model.parameters() if p.requires_grad]
        before.lend_buffers()
        apply_norm_mode(model, problem.mode, lambda: run_model(model, batch))
        value = evaluate(model, batch, problem.criterion)
        grads = torch.autograd.grad(value, leaves, allow_unused=True)
    pairs = zip(leaves, grads, strict=True)
    flat = [(torch.zeros_like(p) if g is None else g).reshape(-1) for p, g in pairs]
    return torch.cat(flat).detach()
