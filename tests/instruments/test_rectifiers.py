"""Rectifiers keep their value and lose the zeros of their second derivative."""

import pytest
import torch
from torch import nn
from torch.autograd import gradgradcheck
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from tests.instruments.agreement import near
from tests.instruments.orders import as_instruments_do, orders
from theodolite.instruments import Hessian
from theodolite.instruments.differentiate.derivatives import can_batch

SPELLINGS = {
    "functional": functional.relu,
    "functional, in place": lambda x: functional.relu(x, inplace=True),
    "named": lambda x: functional.relu(input=x, inplace=True),
    "torch": torch.relu,
    "torch, in place": torch.relu_,
    "method": lambda x: x.relu(),
    "method, in place": lambda x: x.relu_(),
    "module": nn.ReLU(),
    "module, in place": nn.ReLU(inplace=True),
}


def numbers(*shape):
    made = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=made, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("name", SPELLINGS)
def test_derivatives_of_all_orders(name):
    def through(x):
        return SPELLINGS[name](x**3) * x

    x = numbers(4, 3)
    wanted = orders(through, [x])
    with as_instruments_do():
        assert "_Rectified" in SPELLINGS[name](x**3).grad_fn.name()
        assert gradgradcheck(through, (x,))
        found = orders(through, [x])
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


def test_what_is_in_place_writes_to_its_input():
    with as_instruments_do():
        x = numbers(5) * 2
        out = functional.relu(x, inplace=True)
    assert out.data_ptr() == x.data_ptr()
    torch.testing.assert_close(x, numbers(5).mul(2).relu())


def test_views_and_leaves_are_left_to_torch():
    whole = numbers(4, 3) * 1
    with as_instruments_do():
        whole[:2].relu_()
        with pytest.raises(RuntimeError, match="leaf"):
            numbers(3).relu_()
    wanted = numbers(4, 3).detach().clone()
    wanted[:2].relu_()
    torch.testing.assert_close(whole.detach(), wanted)


def test_a_tensor_that_somebody_kept_may_not_be_overwritten():
    x = numbers(3)
    with as_instruments_do():
        kept = x.sigmoid()  # its own backward reads it
        kept.relu_()
        with pytest.raises(RuntimeError, match="inplace operation"):
            torch.autograd.grad(kept.sum(), x)


class Zeros(TorchDispatchMode):
    """Counts tensors of zeros that are filled."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += "zeros" in func.name()
        return func(*args, **(kwargs or {}))


def test_a_product_fills_no_zeros_for_rectifiers():
    layers = [part for _ in range(4) for part in (nn.Linear(3, 3), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(3, 2)).double()
    data = numbers(5, 3).detach(), torch.tensor([0, 1, 0, 1, 1])
    operator = Hessian(model, data, loss=nn.CrossEntropyLoss(), norm_mode="eval")
    vector = torch.ones(operator.shape[1], dtype=torch.float64)
    wanted = operator @ vector
    with operator.together(), Zeros() as zeros:
        torch.testing.assert_close(operator.matvec(vector), wanted)
    assert zeros.count <= 1  # the loss has one of its own


def test_many_vectors_at_once():
    x = numbers(4, 3)
    with as_instruments_do():
        out = ((x**3).relu() * x).sum()
        (first,) = torch.autograd.grad(out, x, create_graph=True)
    assert can_batch(first, [x])


HARD_SIGMOIDS = {
    "functional": functional.hardsigmoid,
    "functional, in place": lambda x: functional.hardsigmoid(x, inplace=True),
    "module": nn.Hardsigmoid(),
}


@pytest.mark.parametrize("name", HARD_SIGMOIDS)
def test_hard_sigmoids_have_derivatives_of_all_orders(name):
    def through(x):
        return HARD_SIGMOIDS[name](3 * x**3) * x

    x = numbers(4, 3)
    with as_instruments_do():
        assert gradgradcheck(through, (x,))
        found = orders(through, [x])
    wanted = orders(lambda x: functional.relu6(3 * x**3 + 3) / 6 * x, [x])
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


class Gated(nn.Module):
    """A block of MobileNetV3: inverted, gated by a hard sigmoid of all places."""

    def __init__(self, gate):
        super().__init__()
        self.wide = nn.Sequential(
            nn.Conv2d(2, 4, 1, bias=False), nn.BatchNorm2d(4), nn.Hardswish(),
            nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), nn.BatchNorm2d(4),
        )  # fmt: skip
        self.down, self.up, self.gate = nn.Conv2d(4, 2, 1), nn.Conv2d(2, 4, 1), gate
        self.narrow = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        z = self.wide(x)
        squeezed = self.up(self.down(z.mean((2, 3), keepdim=True)).relu())
        return (x + self.narrow(z * self.gate(squeezed))).mean((2, 3))


@pytest.mark.parametrize("mode", ["eval", "batch"])
def test_blocks_of_mobile_networks(mode):
    torch.manual_seed(0)
    model, twin = Gated(nn.Hardsigmoid()), Gated(lambda x: functional.relu6(x + 3) / 6)
    twin.load_state_dict(model.state_dict())
    data = torch.randn(5, 2, 4, 4, dtype=torch.float64), torch.tensor([0, 1, 0, 1, 1])
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": mode}
    found = Hessian(model.double(), data, **given).dense()
    near(found, Hessian(twin.double(), data, **given).dense(), rtol=1e-12)
