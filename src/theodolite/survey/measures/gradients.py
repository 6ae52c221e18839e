"""The gradient of the loss on some samples."""

import torch
from torch import Tensor, nn

from theodolite.core import Exclusive, NormMode
from theodolite.instruments import (
    Batch,
    Loss,
    apply_norm_mode,
    evaluate,
    opened,
    run_model,
)


def settle(device: torch.device) -> None:
    """Wait until all kernels on a device have finished, so that timings are correct."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def flat_gradient(
    model: nn.Module, batch: Batch, *, loss: Loss, norm_mode: NormMode
) -> Tensor:
    """Return the gradient by all parameters that require one, as one vector."""
    with Exclusive(), opened(model, careful=False) as before:
        leaves = [p for p in model.parameters() if p.requires_grad]
        before.lend_buffers()
        apply_norm_mode(model, norm_mode, lambda: run_model(model, batch))
        value = evaluate(model, batch, loss)
        grads = torch.autograd.grad(value, leaves, allow_unused=True)
    pairs = zip(leaves, grads, strict=True)
    flat = [(torch.zeros_like(p) if g is None else g).reshape(-1) for p, g in pairs]
    return torch.cat(flat).detach()
