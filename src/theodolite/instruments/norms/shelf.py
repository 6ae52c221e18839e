"""Where tensors lie that all chunks carry from norm to norm."""

import torch
from torch import Tensor


class Shelf:
    """Keeps tensors where they are, or on the host.

    Args:
        host: Whether to bring them to the host's memory, in pages that a card reads
            by itself.
    """

    def __init__(self, *, host: bool = False) -> None:
        self.host = host

    def put(self, tensor: Tensor) -> Tensor:
        """Return what is kept of a tensor."""
        tensor = tensor.detach()
        if not self.host:
            return tensor
        pinned = tensor.device.type == "cuda"
        kept = torch.empty_like(tensor, device="cpu", pin_memory=pinned)
        return kept.copy_(tensor, non_blocking=pinned)

    def fetch(self, kept: Tensor, device: torch.device) -> Tensor:
        """Return a tensor from what was kept of it, on a device."""
        return kept.to(device, non_blocking=True) if self.host else kept
