"""Norms of maps and of derivatives are reached nearly, and never passed."""

import math

import pytest
import torch
from torch.func import jacrev

from theodolite.certificates import normalising, norms
from theodolite.certificates.tubes import Tube, bilinear

SETTINGS = {
    "plain": ((3, 4, 5, 5), {"padding": 2}),
    "even": ((3, 4, 4, 4), {}),
    "strided": ((6, 4, 3, 3), {"stride": 2, "padding": 1}),
    "dilated": ((3, 4, 3, 3), {"dilation": 2}),
    "grouped": ((6, 2, 3, 3), {"groups": 2}),
    "points": ((5, 4, 1, 1), {}),
    "wide": ((200, 4, 3, 3), {"padding": 1}),
    "line": ((3, 4, 3), {"padding": 1}),
    "transposed": ((4, 3, 3, 3), {"stride": 2, "padding": 1, "transposed": True}),
}


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("name", SETTINGS)
def test_norms_of_convolutions(name):
    shape, given = SETTINGS[name]
    sides = len(shape) - 2
    every = {"stride": 1, "padding": 0, "dilation": 1, "transposed": False,
             "output_padding": 0, "groups": 1} | given  # fmt: skip
    values = [
        [one] * sides if type(one) is int and key != "groups" else one
        for key, one in every.items()
    ]

    def form(x, kernel):
        return torch.ops.aten.convolution(x, kernel, None, *values)

    # Constant kernels have the largest ratio of norm to values on a grid.
    for kernel in (drawn(*shape), torch.ones(shape, dtype=torch.float64)):
        x = drawn(1, 4, *[24] * sides).requires_grad_()
        for _ in range(60):
            size = form(x, kernel).norm()
            (slope,) = torch.autograd.grad(size, x)
            x = (slope / slope.norm()).detach().requires_grad_()
        x = x.detach()
        reached = float(form(x, kernel).norm())
        stride = tuple(values[0]) if every["dilation"] == 1 else ()
        own = norms.Convolutions(shape[2:], every["groups"], stride)
        bound = own.fixing(1, kernel, x.shape)
        loose = 8.0 if name == "wide" else 1.3
        assert reached <= bound < loose * reached
        change = drawn(*shape)
        most = own.fixing(0, x, shape) * float(change.norm())
        assert float(form(x, change).norm()) <= most
        assert most <= own.cross * float(change.norm()) * (1 + 1e-5)


@pytest.mark.parametrize(
    ("form", "own", "shapes"),
    [
        (torch.matmul, norms.Matrices(), ((5, 4), (4, 3))),
        (torch.matmul, norms.Matrices(), ((6, 5, 4), (4, 3))),
        (torch.matmul, norms.Matrices(), ((6, 5, 4), (6, 4, 3))),
        (torch.matmul, norms.Matrices(), ((5, 4), (4,))),
        (torch.mul, norms.Norms(), ((5, 4), (4,))),
        (torch.mul, norms.Norms(), ((5, 1), (1, 4))),
        (torch.mul, norms.Norms(), ((5, 4), (5, 4))),
    ],
)
def test_forms_hold_all_within_norms(form, own, shapes):
    torch.manual_seed(0)
    mids = [drawn(*shape) for shape in shapes]
    for place in (0, 1):
        jacobian = jacrev(form, place)(*mids).reshape(-1, mids[place].numel())
        true = float(torch.linalg.matrix_norm(jacobian, 2))
        bound = own.fixing(1 - place, mids[1 - place], shapes[place])
        assert true <= bound <= 2 * true


def test_moves_repeat_what_they_say():
    x = drawn(4, 6)
    for change, known in (
        (lambda one: one.expand(3, 4, 6), math.sqrt(3)),
        (lambda one: one[:, [0, 0, 1]], math.sqrt(2)),
        (lambda one: torch.nn.functional.pad(one[1:], (2, 2)), 1.0),
    ):
        assert norms.repeats(change, x) == pytest.approx(known)


def group(u, eps):
    centred = u - u.mean()
    return centred / (centred.square().mean() + eps).sqrt()


@pytest.mark.parametrize("eps", [1e-5, 1.0])
def test_derivatives_of_normalised_groups_stay_below_their_bounds(eps):
    torch.manual_seed(0)
    largest = 0.0
    for size in (0.03, 0.3, 1.0, 3.0, 30.0) * 4:
        count = int(torch.randint(3, 9, ()))
        u, ways = size * drawn(count), drawn(3, count).requires_grad_()
        deviation = float((u.var(correction=0) + eps).sqrt())
        for _ in range(25):
            a, d, w = (one / one.norm() for one in ways - ways.mean(1, keepdim=True))
            s, r = torch.zeros(2, dtype=torch.float64, requires_grad=True).unbind()
            first = _slope((group(u + s * a + r * d, eps) * w).sum(), r)
            second = _slope(first, s) * math.sqrt(count) * deviation**2
            largest = max(largest, float(second.detach()))
            step = _slope(second.abs(), ways)
            ways = (ways + step / step.norm()).detach().requires_grad_()
    assert 0.9 < largest <= normalising._SECOND


def _slope(value, by):
    return torch.autograd.grad(value, by, create_graph=True)[0]


@pytest.mark.parametrize("dims", [(0,), (1,)])
@pytest.mark.parametrize("layer", ["conv", "linear"])
def test_weighted_errors_hold(layer, dims):
    """Errors of entries that are multiplied by weights of channels or of samples."""
    torch.manual_seed(0)
    shape = (6, 4, 5, 5) if layer == "conv" else (6, 4)
    error = 1e-3 * drawn(*shape)
    x = Tube(drawn(*shape), drawn(*shape), float(error.norm()))
    w = drawn(7, 4, 3, 3) if layer == "conv" else drawn(4, 7)
    w = Tube(w, w)
    if layer == "conv":
        form, own = torch.conv2d, norms.Convolutions((3, 3), 1)
    else:
        form, own = torch.matmul, norms.Matrices()
    result = bilinear(form, x, w, 36, own)
    bias = drawn(result.a.shape[1]).reshape(1, -1, *[1] * (len(shape) - 2))
    result = (result + Tube(bias, bias)).scaled(2.0)
    sides = [1] * len(shape)
    sides[1 - dims[0]] = result.a.shape[1 - dims[0]]
    for _ in range(20):
        weights = drawn(*sides).exp()
        true = float((weights * 2 * form(error, w.a)).norm())
        bound = result.along(weights)[0]
        assert true <= bound <= float(weights.max()) * result.gap * (1 + 1e-5)


def test_a_planted_wrong_norm_is_caught(monkeypatch):
    monkeypatch.setattr(normalising, "_SECOND", 0.5)
    with pytest.raises(AssertionError):
        test_derivatives_of_normalised_groups_stay_below_their_bounds(1e-5)
    root = norms.root_of_gram
    monkeypatch.setattr(norms, "root_of_gram", lambda one: 0.7 * root(one))
    with pytest.raises(AssertionError):
        test_norms_of_convolutions("plain")
