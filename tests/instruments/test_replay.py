"""Products recorded as a CUDA graph: the same numbers, or a sentence why not."""

import gc
import warnings

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.cases import CASES
from theodolite.instruments import Hessian

CONV = next(case for case in CASES if case.name == "conv_bn_resnet")
cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def _vectors(operator):
    made = torch.Generator().manual_seed(0)
    drawn = torch.randn(
        3, operator.shape[0], generator=made, dtype=operator.torch_dtype
    )
    return drawn.to(operator.device)


def test_elsewhere_it_says_why_and_goes_on():
    model, data, loss = CONV.make()
    plain = Hessian(model, data, loss=loss, norm_mode="batch")
    asked = Hessian(model, data, loss=loss, norm_mode="batch", replay=True)
    first, second, _ = _vectors(plain)
    with pytest.warns(RuntimeWarning, match="on cpu, and CUDA is wanted"):
        found = asked @ first
    assert_close(found, plain @ first, rtol=0, atol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close(asked @ second, plain @ second, rtol=0, atol=0)


@pytest.mark.gpu
@cuda
@pytest.mark.parametrize("mode", ["batch", "frozen", "eval"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_replayed_products_are_those_computed(case, mode):
    model, data, loss = case.make()
    model, data = model.cuda(), tuple(part.cuda() for part in data)
    with Hessian(model, data, loss=loss, norm_mode=mode) as plain:
        pairs = [(v, plain @ v) for v in _vectors(plain)]
    del plain  # a graph that is alive keeps others from being recorded
    gc.collect()
    asked = Hessian(model, data, loss=loss, norm_mode=mode, replay=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the product was not recorded")
        for v, wanted in pairs:
            scale = float(wanted.abs().max())
            assert_close(asked @ v, wanted, rtol=0, atol=1e-10 * max(scale, 1e-300))
    with asked.curves() as curves:
        assert all(curve.replay is not None for curve in curves)


@pytest.mark.gpu
@cuda
@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")  # torch's
def test_another_graph_that_is_alive_is_named():
    """And random numbers can be drawn after what failed."""
    model, data, loss = CONV.make()
    model, data = model.cuda(), tuple(part.cuda() for part in data)
    plain = Hessian(model, data, loss=loss, norm_mode="eval")
    v = _vectors(plain)[0]
    wanted = plain @ v
    asked = Hessian(model, data, loss=loss, norm_mode="eval", replay=True)
    with pytest.warns(RuntimeWarning, match="another graph of these parameters"):
        found = asked @ v
    assert_close(found, wanted, rtol=0, atol=1e-10 * float(wanted.abs().max()))
    assert bool(torch.randn(3, device="cuda").isfinite().all())


@pytest.mark.gpu
@cuda
def test_it_follows_the_model():
    model, data, loss = CONV.make()
    model, data = model.cuda(), tuple(part.cuda() for part in data)
    asked = Hessian(model, data, loss=loss, norm_mode="batch", replay=True)
    v = _vectors(asked)[0]
    before = asked @ v
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    after = asked @ v
    assert float((after - before).abs().max()) > 1e-6 * float(before.abs().max())
    fresh = Hessian(model, data, loss=loss, norm_mode="batch") @ v
    assert_close(after, fresh, rtol=1e-9, atol=1e-12)


@pytest.mark.gpu
@cuda
def test_a_way_back_that_reads_the_device_is_not_recorded():
    class Reads(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, *grads):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grads[0] if float(grads[0].sum()) else x * 0

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 1)

        def forward(self, x):
            return Reads.apply(self.layer(x))

    x = torch.randn(4, 2, device="cuda")
    asked = Hessian(
        Model().cuda(), (x, x[:, :1]), loss=nn.MSELoss(), norm_mode="eval", replay=True
    )
    with pytest.warns(RuntimeWarning, match="not recorded"):
        assert float((asked @ torch.ones(3, device="cuda")).norm()) > 0
