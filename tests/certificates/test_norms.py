"""Norms of maps and of derivatives are reached nearly, and never passed."""

import math

import numpy as np
import pytest
import torch
from torch.func import jacrev

from theodolite.certificates import normalising, norms
from theodolite.certificates.intervals import Interval, bilinear
from theodolite.certificates.series import Series

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
        own = norms.Convolutions(shape[2:], every["groups"], {})
        bound = own.fixing(1, kernel, x.shape)
        # Every second place of a smooth image has half the norm.
        loose = {"wide": 8.0, "strided": 2.4, "transposed": 2.4}.get(name, 1.7)
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
    for _ in range(50):
        offs = [drawn(*shape) for shape in shapes]
        pair = [
            Interval(mid, torch.full_like(mid, 9.0), float(off.norm()))
            for mid, off in zip(mids, offs, strict=True)
        ]
        result = bilinear(form, *pair, 9, own)
        moved = [mid + off for mid, off in zip(mids, offs, strict=True)]
        gap = form(*moved) - result.mid
        assert float(gap.norm()) <= result.reach
        assert (gap.abs() <= result.radius).all()


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
    largest = np.zeros(2)
    for size in (0.03, 0.3, 1.0, 3.0, 30.0) * 4:
        count = int(torch.randint(3, 9, ()))
        u, ways = size * drawn(count), drawn(3, count).requires_grad_()
        deviation = float((u.var(correction=0) + eps).sqrt())
        for _ in range(25):
            a, d, w = (one / one.norm() for one in ways - ways.mean(1, keepdim=True))
            s, r = torch.zeros(2, dtype=torch.float64, requires_grad=True).unbind()
            first = _slope((group(u + s * a + r * d, eps) * w).sum(), r)
            second = _slope(first, s)
            sizes = (
                second * math.sqrt(count) * deviation**2,
                _slope(second, s) * count * deviation**3,
            )
            largest = np.maximum(largest, [float(one.detach()) for one in sizes])
            step = _slope(sum(one.abs() for one in sizes), ways)
            ways = (ways + step / step.norm()).detach().requires_grad_()
    assert (largest <= [normalising._SECOND, normalising._THIRD]).all()
    assert (largest > [0.9, 2.0]).all()


def _slope(value, by):
    return torch.autograd.grad(value, by, create_graph=True)[0]


@pytest.mark.parametrize("seed", range(8))
def test_normalised_groups_hold_all_that_may_happen(seed):
    """Values anywhere in their intervals, with slopes and bends anywhere in theirs."""
    torch.manual_seed(seed)
    rng, shape, eps = np.random.default_rng(seed), (5, 3), 1e-3
    mids = drawn(3, *shape) * torch.tensor([1.0, 1.0, 0.3])[:, None, None]
    offs = [10.0 ** rng.uniform(-6, -1) * drawn(*shape).abs() for _ in range(3)]
    terms = tuple(
        Interval(mid, off, float(off.norm()) / 2)
        for mid, off in zip(mids, offs, strict=True)
    )
    length = 10.0 ** rng.uniform(-3, 0)
    result = normalising.normalised(Series(terms, length), (0,), eps)

    def normed(u):
        centred = u - u.mean(0)
        return centred / (centred.square().mean(0) + eps).sqrt()

    for _ in range(200):
        u, first, second = (
            one.mid + one.radius * (2 * torch.rand(shape) - 1).sign() / 2
            for one in terms
        )
        t = length * float(torch.rand(()))
        truth = normed(u + t * first + t**2 * second)
        start = normed(u)
        slope = (jacrev(normed)(u) * first).sum((2, 3))
        for true, found in ((start, result.terms[0]), (slope, result.terms[1])):
            assert ((true - found.mid).abs() <= found.radius + 1e-12).all()
            assert float((true - found.mid).norm()) <= found.reach + 1e-12
        rest = (truth - start - t * slope) / t**2
        slack = 1e-12 / t**2
        assert (
            (rest - result.terms[2].mid).abs() <= result.terms[2].radius + slack
        ).all()
        assert (
            float((rest - result.terms[2].mid).norm()) <= result.terms[2].reach + slack
        )


def test_a_planted_wrong_norm_is_caught(monkeypatch):
    monkeypatch.setattr(normalising, "_SECOND", 0.5)
    with pytest.raises(AssertionError):
        test_derivatives_of_normalised_groups_stay_below_their_bounds(1e-5)
    root = norms.root_of_gram
    monkeypatch.setattr(norms, "root_of_gram", lambda one: 0.7 * root(one))
    with pytest.raises(AssertionError):
        test_norms_of_convolutions("plain")
