"""Convolutions by standard kernels: torch's values, and all of its derivatives."""

import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional
from torch.testing import assert_close

from tests.cases import CASES
from tests.instruments.orders import as_instruments_do, orders
from theodolite.instruments import Hessian
from theodolite.instruments.differentiate import convolution_by_samples
from theodolite.instruments.differentiate import convolution_twice as home

# Input, weight, whether there is a bias, and what else the call is given.
CALLS = {
    "1-d": (functional.conv1d, (2, 3, 7), (4, 3, 3), True, {}),
    "2-d": (functional.conv2d, (2, 3, 5, 4), (4, 3, 3, 2), True, {"padding": 1}),
    "3-d": (functional.conv3d, (1, 2, 3, 4, 3), (3, 2, 2, 2, 2), True, {}),
    "strides": (
        functional.conv2d,
        (2, 2, 6, 5),
        (3, 2, 3, 3),
        True,
        {"stride": (2, 3), "padding": (1, 2)},
    ),
    "dilation": (
        functional.conv2d,
        (2, 2, 7, 7),
        (3, 2, 2, 3),
        False,
        {"dilation": (3, 2), "stride": 2},
    ),
    "groups": (functional.conv2d, (2, 4, 4, 4), (6, 2, 3, 3), True, {"groups": 2}),
    "depthwise": (
        functional.conv2d,
        (2, 3, 5, 5),
        (3, 1, 3, 3),
        True,
        {"groups": 3, "padding": 1},
    ),
    "same": (functional.conv2d, (2, 2, 5, 4), (3, 2, 3, 3), True, {"padding": "same"}),
    "same, even": (
        functional.conv2d,
        (2, 2, 5, 4),
        (3, 2, 4, 3),
        True,
        {"padding": "same", "dilation": (1, 2)},
    ),
    "valid": (functional.conv1d, (2, 2, 5), (3, 2, 2), False, {"padding": "valid"}),
    "one sample": (functional.conv2d, (2, 4, 4), (3, 2, 3, 3), True, {"padding": 1}),
    "transposed 1-d": (
        functional.conv_transpose1d,
        (2, 4, 5),
        (4, 2, 3),
        True,
        {"stride": 3, "output_padding": 1, "groups": 2},
    ),
    "transposed 2-d": (
        functional.conv_transpose2d,
        (2, 3, 3, 4),
        (3, 2, 3, 2),
        True,
        {"stride": (2, 1), "padding": 1, "output_padding": (1, 0), "dilation": (1, 2)},
    ),
    "transposed 3-d": (
        functional.conv_transpose3d,
        (1, 2, 2, 3, 2),
        (2, 2, 2, 2, 2),
        True,
        {"stride": 2},
    ),
    "numbers of NumPy": (
        functional.conv2d,
        (2, 4, 6, 6),
        (2, 2, 2, 2),
        True,
        {
            "stride": np.int64(2),
            "padding": (np.int32(1), 0),
            "dilation": [np.int64(2)],
            "groups": np.int64(2),
        },
    ),
    "general": (
        torch.convolution,
        (2, 2, 4, 4),
        (3, 2, 2, 2),
        True,
        {
            "stride": [1, 2],
            "padding": [0, 1],
            "dilation": [1, 1],
            "transposed": False,
            "output_padding": [0, 0],
            "groups": 1,
        },
    ),
}


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    monkeypatch.setattr(home, "quicker", lambda *_: True)


def _made(name):
    call, x, weight, biased, options = CALLS[name]
    made = torch.Generator().manual_seed(len(name))
    width = weight[1] if "transposed" in name else weight[0]
    width *= options.get("groups", 1) if "transposed" in name else 1
    shapes = [x, weight, (width,)] if biased else [x, weight]
    parts = [
        torch.randn(shape, generator=made, dtype=torch.float64).requires_grad_()
        for shape in shapes
    ]

    def work(x, weight, bias=None):
        return call(x, weight, bias, **options)

    return work, parts


@pytest.mark.filterwarnings("ignore:Using padding='same' with even:UserWarning")
@pytest.mark.parametrize("name", CALLS)
def test_all_orders_are_those_of_torch(name):
    work, parts = _made(name)
    # Of convolutions with output_padding torch 2.13 has no third derivative.
    count = 2 if "output_padding" in CALLS[name][4] and "trans" in name else 3
    wanted = orders(work, parts, count)
    with as_instruments_do():
        assert "_Forward" in _origins(work(*parts))
        found = orders(work, parts, count)
    for mine, theirs in zip(found, wanted, strict=True):
        scale = float(theirs.detach().abs().max())
        assert_close(mine, theirs, rtol=0, atol=1e-10 * scale)


def _origins(out):
    """Name the last two steps of a graph; one sample is cut out of a batch of one."""
    last = out.grad_fn
    return f"{last.name()} {last.next_functions[0][0].name()}"


@pytest.mark.parametrize("name", CALLS)
def test_by_differences(name):
    work, parts = _made(name)
    with as_instruments_do():
        assert gradcheck(work, parts, fast_mode=True)
        assert gradgradcheck(work, parts, fast_mode=True)


@pytest.mark.parametrize("name", ["1-d", "2-d", "3-d", "strides", "groups"])
def test_a_sample_at_a_time(name, monkeypatch):
    work, parts = _made(name)
    parts[0] = torch.cat([parts[0].detach(), parts[0].detach() + 1]).requires_grad_()
    with as_instruments_do():
        wanted = orders(work, parts)
        monkeypatch.setattr(convolution_by_samples, "_AT_ONCE", 0)
        sizes = _sizes_convolved(monkeypatch)
        found = orders(work, parts)
        with torch.no_grad():
            assert torch.equal(work(*parts), wanted[0])
    assert max(sizes) == torch.get_num_threads() < len(parts[0])
    for mine, theirs in zip(found, wanted, strict=True):
        scale = float(theirs.detach().abs().max())
        assert_close(mine, theirs, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize(("width", "size", "parts"), [(512, 4, 4), (16, 28, 32)])
def test_no_less_is_laid_out_than_the_weight(width, size, parts):
    """Each part reads all of the weight: many parts of wide ones take longer."""
    samples = parts * torch.get_num_threads() * (32 if width == 512 else 2)
    x = torch.empty(samples, width, size, size, dtype=torch.float64)
    weight = torch.empty(width, width, 3, 3, dtype=torch.float64)
    at_once = convolution_by_samples.samples_at_once(x, weight, PLAIN)
    assert samples == parts * at_once


PLAIN = convolution_by_samples.Sliding([1, 1], [1, 1], [1, 1], False, [0, 0], 1)


def test_cotangents_of_parts_are_added_as_they_come(monkeypatch):
    monkeypatch.setattr(convolution_by_samples, "_AT_ONCE", 0)
    made, alive, plain = [], [], convolution_by_samples._pulled

    def noted(*given):
        alive.append(sum(kept() is not None for kept in made))
        found = plain(*given)
        made.extend(weakref.ref(part) for part in found[1:])
        return found

    monkeypatch.setattr(convolution_by_samples, "_pulled", noted)
    made_by = torch.Generator().manual_seed(0)
    shapes = [(12, 4, 5, 5), (12, 3, 5, 5), (4, 3, 3, 3)]
    g, x, weight = (
        torch.randn(shape, generator=made_by, dtype=torch.float64) for shape in shapes
    )
    found = convolution_by_samples.pulled_back(g, x, weight, PLAIN, [True] * 3)
    assert len(alive) > 3
    assert max(alive) <= 4  # the sums of both, and one part of each
    for mine, theirs in zip(found, plain(g, x, weight, PLAIN, [True] * 3), strict=True):
        assert_close(mine, theirs, rtol=1e-12, atol=1e-12)


def _sizes_convolved(monkeypatch):
    """Note how many samples each convolution takes."""
    sizes, plain = [], torch.convolution

    def noted(x, *rest):
        sizes.append(len(x))
        return plain(x, *rest)

    monkeypatch.setattr(torch, "convolution", noted)
    return sizes


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_modules_that_pad(mode):
    layer = nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode, dtype=torch.float64)
    x = torch.randn(2, 2, 4, 5, dtype=torch.float64, requires_grad=True)

    def work(x, *_):
        return layer(x)

    parts = [x, layer.weight, layer.bias]
    wanted = orders(work, parts)
    with as_instruments_do():
        found = orders(work, parts)
    for mine, theirs in zip(found, wanted, strict=True):
        assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("wanted", [[0], [1], [2], [0, 2], [1, 2]])
def test_only_what_is_asked_for(wanted):
    """Some of the three play no part, in either pass."""
    work, parts = _made("2-d")
    chosen = [parts[i] for i in wanted]
    plain = torch.autograd.grad(work(*parts).tanh().sum(), parts, create_graph=True)
    with as_instruments_do():
        mine = torch.autograd.grad(work(*parts).tanh().sum(), parts, create_graph=True)
    for i in range(3):
        along = torch.randn_like(parts[i])
        left, right = (
            torch.autograd.grad(
                g[i], chosen, along, retain_graph=True, allow_unused=True
            )
            for g in (mine, plain)
        )
        for a, b in zip(left, right, strict=True):
            assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_many_cotangents_at_once():
    work, parts = _made("groups")
    with as_instruments_do():
        grads = torch.autograd.grad(work(*parts).tanh().sum(), parts, create_graph=True)
    along = [torch.randn(3, *g.shape, dtype=g.dtype) for g in grads]
    many = torch.autograd.grad(
        grads, parts, along, is_grads_batched=True, retain_graph=True
    )
    for place in range(3):
        one = torch.autograd.grad(
            grads, parts, [a[place] for a in along], retain_graph=True
        )
        for mine, alone in zip(many, one, strict=True):
            assert_close(mine[place], alone, rtol=1e-10, atol=1e-12)


def test_what_is_not_ordinary_is_left_to_torch():
    x, weight = torch.randn(1, 2, 4, 4), torch.randn(3, 2, 3, 3, requires_grad=True)
    with as_instruments_do():
        with pytest.raises(RuntimeError, match="padding='same' is not supported"):
            functional.conv2d(x, weight, stride=2, padding="same")
        with pytest.raises(RuntimeError, match="scalar type"):
            functional.conv2d(x.double(), weight)
        for mistaken in ({"stride": 2.0}, {"padding": None}, {"dilation": "same"}):
            with pytest.raises(TypeError, match=r"conv2d\(\) received"):
                functional.conv2d(x, weight, **mistaken)
        with torch.no_grad():
            assert not functional.conv2d(x, weight).requires_grad
        mapped = torch.func.vmap(lambda w: functional.conv2d(x, w))(weight[None])
        complex_ = functional.conv2d(x.to(torch.complex64), weight.to(torch.complex64))
        assert "_Forward" not in complex_.grad_fn.name()
    assert_close(mapped[0], functional.conv2d(x, weight))


def test_autocast_casts_as_torch_does():
    x, weight = torch.randn(2, 2, 4, 4), torch.randn(3, 2, 3, 3, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        plain = functional.conv2d(x, weight)
        with as_instruments_do():
            mine = functional.conv2d(x, weight)
    assert mine.dtype is torch.bfloat16
    assert_close(mine, plain)
    (mine,) = torch.autograd.grad(mine.float().square().sum(), weight)
    (plain,) = torch.autograd.grad(plain.float().square().sum(), weight)
    assert mine.dtype is torch.float32
    assert_close(mine, plain)


@pytest.mark.parametrize("mode", ["batch", "eval"])
def test_products_of_a_whole_network(mode, monkeypatch):
    case = next(case for case in CASES if case.name == "conv_bn_resnet")
    model, data, loss = case.make()
    found = {}
    for ours in (True, False):
        monkeypatch.setattr(home, "quicker", lambda *_, ours=ours: ours)
        with Hessian(model, data, loss=loss, norm_mode=mode) as operator:
            made = torch.Generator().manual_seed(0)
            v, w = torch.randn(
                2, operator.shape[0], generator=made, dtype=torch.float64
            )
            found[ours] = operator @ v
            there, back = float(w @ found[ours]), float(v @ (operator @ w))
            assert there == pytest.approx(back, rel=1e-10)
            name = operator.names[0]
            block = operator[[name]]
            first = operator.split(v)[name].reshape(-1)
            found[ours, "block"] = block @ first
    scale = float(found[False].abs().max())
    assert_close(found[True], found[False], rtol=0, atol=1e-10 * scale)
    assert_close(found[True, "block"], found[False, "block"], rtol=1e-9, atol=1e-12)
    assert float(found[True].norm()) > 0


@pytest.mark.parametrize(
    ("dtype", "size", "wanted"),
    [(torch.float64, 32, True), (torch.float64, 4, False), (torch.float32, 32, False)],
)
def test_on_a_processor_only_where_it_is_quicker(monkeypatch, dtype, size, wanted):
    monkeypatch.undo()
    x = torch.randn(4, 4, size, size, dtype=dtype)
    layer = nn.Conv2d(4, 8, 3, dtype=dtype)
    with as_instruments_do():
        assert ("_Forward" in layer(x).grad_fn.name()) is wanted
