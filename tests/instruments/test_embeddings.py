"""Tables of rows: the Hessian is that of the loss, whatever training makes of it."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn.functional import embedding_bag

from tests.instruments.agreement import near
from tests.instruments.orders import as_instruments_do
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


MISTAKEN = {
    "a row below zero": (torch.tensor([[0, -1]]), {}),
    "a row past the end": (torch.tensor([[0, 7]]), {}),
    "no such mode": (TOKENS, {"mode": "median"}),
    "weights of a mean": (TOKENS, {"per_sample_weights": torch.ones(3, 3)}),
    "no offsets": (TOKENS[0], {}),
    "a late first bag": (TOKENS[0], {"offsets": torch.tensor([1, 2])}),
    "counts of a largest": (TOKENS, {"mode": "max", "scale_grad_by_freq": True}),
}


@pytest.mark.parametrize("name", MISTAKEN)
def test_mistaken_bags_are_refused_in_the_words_of_torch(name):
    tokens, options = MISTAKEN[name]
    table, said = torch.randn(5, 3, requires_grad=True), []
    for around in (nullcontext(), as_instruments_do()):
        with around, pytest.raises((RuntimeError, ValueError, TypeError)) as told:
            embedding_bag(tokens, table, **options)
        said.append((told.type, str(told.value)))
    assert said[0] == said[1]
