"""What a kept graph reads by address stays there, whatever becomes of the model."""

import gc

import torch
from torch import nn

from theodolite.instruments import Hessian


def test_the_weights_that_a_graph_was_built_of_are_held():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    batch = torch.randn(5, 3), torch.randn(5, 1)
    operator = Hessian(model, batch, loss=nn.MSELoss(), norm_mode="eval")
    v = torch.ones(operator.shape[1])
    _ = operator @ v
    places = [p.data_ptr() for p in model.parameters()]
    for parameter in model.parameters():
        parameter.data = parameter.data.clone()
    gc.collect()
    storages = operator._prepared._detector._storages
    assert {s.data_ptr() for s in storages} == set(places)
    assert torch.isfinite(operator @ v).all()
    fresh = [p.data_ptr() for p in model.parameters()]
    storages = operator._prepared._detector._storages
    assert {s.data_ptr() for s in storages} == set(fresh)
