"""Critical points on spheres: all of them, or word that some are missing."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.instruments.test_preservation import portrait
from theodolite.core import MeasurementError, SpinGlassBlueprint, Status
from theodolite.instruments import CriticalPoints, critical_points
from theodolite.networks import build

LEVELS = torch.tensor([1.0, 2.5, 4.0, 7.0], dtype=torch.float64)


def quadratic(points):
    """Eigenvectors and their negatives are its critical points, the k-th of index k."""
    return (LEVELS * points**2).sum(1) / 2


def glass(width, mixture, seed=0):
    return build(SpinGlassBlueprint(width=width, mixture=mixture), seed=seed)


def find(energy, width, **settings):
    return critical_points(energy, dimension=width, radius=width**0.5, **settings)


def test_eigenvectors_of_a_quadratic_form():
    found = critical_points(quadratic, dimension=4, radius=3.0, seed=1)
    assert found.status is Status.CONVERGED
    assert found.counts.tolist() == [2, 2, 2, 2]
    assert found.indices.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    wanted = np.repeat(LEVELS.numpy() * 9 / 2, 2)
    np.testing.assert_allclose(found.energies, wanted, rtol=1e-12)
    assert (np.abs(found.energies - wanted) <= found.energy_errors + 1e-12).all()
    np.testing.assert_allclose(np.abs(found.points).max(1), 3.0, rtol=1e-10)
    np.testing.assert_allclose(found.bends, np.repeat([1.5, 1.5, 1.5, 3.0], 2))
    assert found.residuals.max() < 1e-10
    assert found.distances.max() < 1e-9
    assert found.below(10.0).tolist() == [2, 0, 0, 0]


def test_a_circle_by_a_fine_grid():
    """On a circle critical points are the sign changes of the derivative."""
    angle = np.linspace(0, 2 * np.pi, 20001)
    for seed in range(4):
        sampled = glass(2, {2: 0.3, 5: 0.7}, seed)
        grid = math.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        slope = np.diff(sampled(torch.from_numpy(grid)).numpy())
        turns = np.flatnonzero(slope[:-1] * slope[1:] < 0).size
        turns += bool(slope[-1] * slope[0] < 0)
        found = find(sampled, 2, seed=seed)
        assert found.complete
        assert found.total == turns


def test_indices_are_those_of_the_hessian_along_great_circles():
    sampled = glass(3, {2: 0.5, 3: 0.5}, 2)
    found = find(sampled, 3)
    assert found.euler == found.characteristic == 2
    for point, index in zip(found.points, found.indices, strict=True):
        basis = np.linalg.svd(point[None])[2][1:]
        step = 1e-3
        values = np.zeros((2, 2))
        for i, j in np.ndindex(2, 2):
            for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                moved = point + step * (s * basis[i] + t * basis[j])
                moved *= math.sqrt(3) / np.linalg.norm(moved)
                energy = float(sampled(torch.from_numpy(moved[None])))
                values[i, j] += s * t * energy / (4 * step**2)
        assert (np.linalg.eigvalsh(values) < 0).sum() == index


def test_antipodes_and_the_bound_of_a_single_order():
    bound = 2 * (2**3 - 1)
    found = find(glass(3, {3: 1.0}, 1), 3, antipodal=True, bound=bound)
    assert found.complete
    assert found.total <= bound
    assert found.total % 2 == 0
    # The negative of a minimum is a maximum of the negative energy.
    np.testing.assert_allclose(found.energies, -found.energies[::-1], atol=1e-9)
    assert found.counts.tolist() == found.counts.tolist()[::-1]
    assert not find(glass(3, {3: 1.0}, 1), 3, bound=3, max_starts=200).complete
    # What is no symmetry of the energy: negatives of its points are none of them.
    wrong = find(glass(3, {2: 0.5, 3: 0.5}, 1), 3, antipodal=True, max_starts=200)
    assert wrong.status is Status.INCOMPLETE


def test_too_few_starts_say_so():
    found = find(glass(5, {3: 0.5, 4: 0.5}), 5, starts=8, max_starts=8)
    assert found.status is Status.INCOMPLETE
    assert found.missing == math.inf
    assert all(row["error"] in (math.inf, None) or row["quantity"] == "energies"
               for row in found.rows())  # fmt: skip
    assert "raise max_starts" in str(found)


def test_a_circle_of_minima_is_not_counted():
    flat = find(lambda w: w[:, 2] ** 2, 3, starts=50, max_starts=100)
    assert flat.status is Status.INCOMPLETE


def test_the_seed_decides_and_readings_keep(tmp_path):
    sampled = glass(3, {3: 1.0})
    first, same = (find(sampled, 3, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.points, same.points)
    other = find(sampled, 3, seed=5)
    np.testing.assert_allclose(np.sort(first.energies), np.sort(other.energies))
    first.save(tmp_path / "found")
    back = CriticalPoints.load(tmp_path / "found")
    np.testing.assert_array_equal(back.indices, first.indices)


class Noisy(nn.Module):
    """A module that keeps books, drops out and normalises while it trains."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4, dtype=torch.float64)
        self.norm = nn.BatchNorm1d(4, dtype=torch.float64)
        self.drop = nn.Dropout(0.5)
        self.calls = 0

    def forward(self, points):
        self.calls += 1
        return torch.tanh(self.drop(self.norm(self.layer(points)))).sum(1)


def test_a_module_is_left_as_found():
    model = Noisy().train()
    before = portrait(model)
    found = find(model, 3, starts=40)
    assert found.total >= 2
    assert portrait(model) == before
    assert (model.training, model.calls) == (True, 0)


@pytest.mark.parametrize(
    ("energy", "changes", "words"),
    [
        (lambda w: w, {}, r"came as \(100, 3\): return one number a point"),
        (lambda w: 1.0, {}, "came as float"),
        (lambda w: w.detach().sum(1), {}, "cannot be differentiated by its points"),
        (lambda w: w.sum(1) + w.sum(), {}, "when other points stood beside it"),
        (nn.Linear(3, 1), {}, "computes in torch.float32, too coarse"),
        (quadratic, {"dimension": 1}, "a sphere in 1 dimensions"),
        (quadratic, {"radius": 0.0}, "radius is 0.0"),
        (quadratic, {"tol": 2.0}, "tol 2.0"),
        (quadratic, {"starts": 10, "max_starts": 5}, "no more starts than max_starts"),
    ],
)
def test_misuse_is_one_sentence(energy, changes, words):
    with pytest.raises(MeasurementError, match=words) as caught:
        critical_points(energy, **{"dimension": 3, "radius": 1.0, **changes})
    assert "\n" not in str(caught.value)


def test_an_energy_of_nan_is_a_status():
    found = find(lambda w: w.sum(1) * math.nan, 3, starts=5)
    assert found.status is Status.NONFINITE
    assert found.total == 0
