"""Sampled Hamiltonians: the law of Eqs 5 and 26, in few numbers."""

import itertools
import math

import numpy as np
import pytest
import torch

from theodolite.core import ConfigError, SpinGlassBlueprint
from theodolite.networks import build


def glass(width, mixture, seed=0, **settings):
    return build(
        SpinGlassBlueprint(width=width, mixture=mixture), seed=seed, **settings
    )


def test_energies_are_those_of_the_full_tensors():
    """A tensor with all its entries, of which the couplings are sums."""
    width, order = 3, 4
    sampled = glass(width, {order: 1.0}, seed=5)
    couplings = sampled.units[0].couplings.numpy()
    monomials = list(itertools.combinations_with_replacement(range(width), order))
    assert len(monomials) == couplings.size
    tensor = np.zeros((width,) * order)
    for value, factors in zip(couplings, monomials, strict=True):
        tensor[factors] = value
    points = np.random.default_rng(0).standard_normal((7, width))
    wanted = np.einsum("abcd,ka,kb,kc,kd->k", tensor, points, points, points, points)
    energies = sampled(torch.from_numpy(points)).numpy()
    np.testing.assert_allclose(energies, wanted, rtol=1e-12)


def test_couplings_have_the_variance_of_all_entries_of_a_monomial():
    """Λ^{1-r} ε² times the number of orders in which the factors can be written."""
    width, order, weight, draws = 3, 3, 0.3, 3000
    drawn = (glass(width, {order: weight, 2: 1 - weight}, s) for s in range(draws))
    couplings = np.array([one.units[1].couplings.numpy() for one in drawn])
    monomials = list(itertools.combinations_with_replacement(range(width), order))
    repeats = np.array(
        [math.factorial(order) / math.prod(math.factorial(m.count(i)) for i in range(3))
         for m in monomials]
    )  # fmt: skip
    assert repeats.sum() == width**order
    wanted = weight * width ** (1 - order) * repeats
    ratio = couplings.var(axis=0) / wanted
    error = math.sqrt(2 / draws)
    assert np.abs(ratio - 1).max() < 4.5 * error
    correlation = np.corrcoef(couplings.T) - np.eye(len(monomials))
    assert np.abs(correlation).max() < 5 / math.sqrt(draws)


def test_a_seed_gives_one_disorder_to_all_mixtures_and_another_to_each_width():
    pure, mixed = glass(4, {3: 1.0}), glass(4, {2: 0.75, 3: 0.25})
    torch.testing.assert_close(
        mixed.units[1].couplings, pure.units[0].couplings / 2, rtol=1e-14, atol=0
    )
    first, second = (glass(n, {2: 1.0}).units[0].couplings for n in (3, 4))
    assert abs(first[0] / second[0]) != pytest.approx(math.sqrt(4 / 3), rel=1e-6)


def test_a_glass_of_order_one_is_linear():
    sampled = glass(3, {1: 1.0})
    point = torch.tensor([[1.0, 2.0, -1.0]], dtype=torch.float64)
    torch.testing.assert_close(sampled(3 * point), 3 * sampled(point))


def test_moderate_widths_are_usable():
    sampled = glass(60, {4: 0.5, 2: 0.5})
    points = torch.randn(4, 60, dtype=torch.float64)
    assert torch.isfinite(sampled(points)).all()


def test_what_cannot_be_sampled_or_evaluated_is_refused_in_a_sentence():
    with pytest.raises(ConfigError, match="depth 5 has 467,189,912,112 couplings"):
        glass(560, {5: 1.0})
    with pytest.raises(ConfigError, match=r"\(4,\): this glass wants \(points, 3\)"):
        glass(3, {2: 1.0})(torch.ones(4, dtype=torch.float64))
