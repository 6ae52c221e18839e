"""Tables of rows: the Hessian is that of the loss, whatever training makes of it."""

import pytest
import torch
from torch import nn

from tests.instruments.agreement import near
from theodolite.instruments import diagonal, hessian

TOKENS = torch.tensor([[0, 1, 1], [2, 1, 0], [3, 3, 3]])


def loss(table, tokens):
    return table(tokens).tanh().pow(3).sum()


@pytest.mark.parametrize(
    "make",
    [
        nn.Embedding,
        lambda *shape, **how: nn.EmbeddingBag(*shape, mode="sum", **how),
        lambda *shape, **how: nn.EmbeddingBag(*shape, mode="mean", **how),
    ],
)
def test_gradients_scaled_by_counts_are_no_part_of_the_loss(make):
    torch.manual_seed(0)
    plain, scaled = (
        make(5, 3, scale_grad_by_freq=scaled).double() for scaled in (False, True)
    )
    scaled.load_state_dict(plain.state_dict())
    how = {"loss": loss, "norm_mode": "eval"}
    wanted = hessian(plain, TOKENS, **how).matrix
    assert abs(wanted).max() > 0.01
    near(hessian(scaled, TOKENS, **how).matrix, wanted)
    near(diagonal(scaled, TOKENS, **how).diagonal, wanted.diagonal())
