"""Every instrument leaves the model as found, also after an exception."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import in_modes
from theodolite.core import MeasurementError, NormMode
from theodolite.instruments import (
    condition,
    hessian,
    index,
    preserve,
    spectrum,
    trace,
)


def portrait(model):
    """Everything about a model that a user could notice, by identity and by bits."""
    tensors = {}
    for name, p in [*model.named_parameters(), *model.named_buffers()]:
        grad = getattr(p, "grad", None)
        tensors[name] = (
            id(p),
            p.detach().numpy().tobytes(),
            p.requires_grad,
            None if grad is None else (id(grad), grad.numpy().tobytes()),
            p._version,
        )
    modules = {
        name: (
            m.training,
            list(m._forward_hooks),
            list(m._forward_pre_hooks),
            list(m._parameters),
            list(m._modules),
            list(m._state_dict_hooks),
            m._is_full_backward_hook,
            {key: b is None for key, b in m._buffers.items()},
        )
        for name, m in model.named_modules()
    }
    randomness = (
        torch.get_rng_state().numpy().tobytes(),
        np.random.get_state()[1].tobytes(),  # noqa: NPY002
        random.getstate(),
    )
    return tensors, modules, randomness


def without_versions(picture):
    tensors, modules, randomness = picture
    return {k: v[:-1] for k, v in tensors.items()}, modules, randomness


def prepare(case):
    model, batch, loss = case.make()
    loss(model(batch[0]), batch[1]).backward()
    model.register_forward_hook(lambda *_: None)
    for i, module in enumerate(model.modules()):
        module.training = bool(i % 2)
    return model, batch, loss


# A matrix and products; the others are made of these.
MEASURED = {
    NormMode.BATCH: (hessian, spectrum),
    NormMode.FULL: (hessian, condition),
    NormMode.FROZEN: (hessian,),
    NormMode.EVAL: (hessian, index),
    NormMode.AS_IS: (hessian, index),
}


@in_modes
def test_left_as_found(case, mode):
    model, batch, loss = prepare(case)
    before = portrait(model)
    for instrument in MEASURED[mode]:
        instrument(model, batch, loss=loss, norm_mode=mode)
        after = portrait(model)
        assert without_versions(after) == without_versions(before)
        # Parameters were not even written to, so graphs that hold them stay valid.
        for name, _ in model.named_parameters():
            assert after[0][name][-1] == before[0][name][-1]


@in_modes
def test_left_as_found_after_an_exception(case, mode):
    model, batch, _ = prepare(case)
    before = portrait(model)

    def failing(network, given):
        network(given[0])
        torch.rand(3)
        np.random.rand(3)  # noqa: NPY002
        network.register_forward_pre_hook(lambda *_: None)
        return torch.tensor(torch.nan)

    with pytest.raises(MeasurementError):
        hessian(model, batch, loss=failing, norm_mode=mode)
    assert without_versions(portrait(model)) == without_versions(before)


def test_hostile_code_is_undone():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[0].weight.grad = torch.ones(2, 2)
    before = portrait(model)
    with preserve(model):
        model[0].weight.data = torch.zeros(3, 3)
        model[0].weight.requires_grad_(False)
        model[0].weight.grad.zero_()
        model[0].bias.grad = torch.ones(2)
        model[0].bias.data.fill_(torch.nan)
        model[1].register_buffer("running_mean", None)
        model[1].register_buffer("extra", torch.ones(1))
        model[1].running_var.mul_(2)
        model[0].add_module("extra", nn.ReLU())
        model[0].register_state_dict_post_hook(lambda *_: None)
        model[0].register_full_backward_hook(lambda *_: None)
        model.double()
        model.eval()
    assert without_versions(portrait(model)) == without_versions(before)


def test_hooks_on_gradients_come_and_go_with_the_context():
    layer = nn.Linear(2, 1)
    own = layer.weight.register_hook(lambda grad: 2 * grad)
    with preserve(layer):
        own.remove()
        layer.weight.register_hook(lambda grad: 3 * grad)
        layer.bias.register_hook(lambda grad: 5 * grad)
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.weight.grad.tolist() == [[2.0, 2.0]]
    assert layer.bias.grad.tolist() == [1.0]


def test_a_dictionary_of_hooks_that_was_replaced_comes_back():
    layer = nn.Linear(2, 1)
    calls = []
    handle = layer.register_forward_hook(lambda *_: calls.append(1))
    with preserve(layer):
        layer._forward_hooks = type(layer._forward_hooks)()
    layer(torch.ones(1, 2))
    handle.remove()
    layer(torch.ones(1, 2))
    assert calls == [1]


ODD_BUFFERS = {
    "sparse": lambda x: x.to_sparse(),
    "compressed rows": lambda x: x.to_sparse_csr(),
    "ragged": lambda x: torch.nested.nested_tensor([x[0], x[1, :1]]),
    "8 bits": lambda x: x.to(torch.float8_e4m3fn),
}


@pytest.mark.filterwarnings("ignore:.*Sparse CSR|.*nested tensors:UserWarning")
@pytest.mark.parametrize("kind", ODD_BUFFERS)
def test_buffers_of_any_kind_come_back(kind):
    """A comparison that torch lacks would leave the model and its seed changed."""
    numbers, make = torch.tensor([[1.0, 2.0], [0.0, 4.0]]), ODD_BUFFERS[kind]
    model = nn.Linear(2, 2)
    plain = trace(model, (numbers, numbers), loss=nn.MSELoss(), norm_mode="eval")
    model.register_buffer("kept", make(numbers))
    kept, drawn = model.kept, torch.get_rng_state()
    with preserve(model):
        kept.copy_(make(2 * numbers))
        torch.rand(1)
    assert model.kept is kept
    assert repr(kept) == repr(make(numbers))
    assert torch.equal(torch.get_rng_state(), drawn)
    held = trace(model, (numbers, numbers), loss=nn.MSELoss(), norm_mode="eval")
    assert held.trace == plain.trace


def test_a_read_only_array_is_left_alone():
    model = nn.Linear(2, 2)
    model.table = np.arange(3.0)
    model.table.flags.writeable = False
    with preserve(model):
        torch.rand(1)
    assert model.table.tolist() == [0.0, 1.0, 2.0]
