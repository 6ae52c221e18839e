import torch
from torch import nn

import theodolite


class Hungry(nn.Module):
    """A network that a device has room for when it is not differentiated."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        if torch.is_grad_enabled() and x.shape[0] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate " * 9)
        return self.layer(x)


def test_a_full_device_is_told_in_a_sentence():
    batch = torch.zeros(4, 3), torch.tensor([0, 1, 0, 1])
    result = theodolite.survey(
        Hungry(), batch, measures=["map", "signal", "curvature"], progress=False
    )
    said = [
        one.reason for one in result.measured if one.status in ("failed", "refused")
    ]
    assert said
    for one in [*said, *result.unsupported]:
        assert "no memory left: pass smaller batches" in one
        assert "Tried" not in one
