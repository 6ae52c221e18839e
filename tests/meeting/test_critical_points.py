"""Critical points of sampled spheres against the means of Kac and Rice."""

import math

import numpy as np
import pytest

from theodolite import instruments, networks
from theodolite.core import SpinGlassBlueprint, estimate
from theodolite.theory import critical_exponent, mean_critical_points

CASES = [
    (2, {3: 1.0}, 30), (2, {2: 0.25, 4: 0.75}, 30), (3, {3: 1.0}, 20),
    (3, {2: 0.5, 3: 0.5}, 20), (4, {3: 1.0}, 16), (4, {2: 0.5, 3: 0.5}, 16),
    (5, {3: 1.0}, 16),
]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "mixture", "glasses"), CASES, ids=lambda case: str(case)
)
def test_counts_agree_and_the_asymptotic_formula_is_rejected(width, mixture, glasses):
    plan = SpinGlassBlueprint(width=width, mixture=mixture)
    readings = [
        instruments.critical_points(
            networks.build(plan, seed=seed),
            dimension=width,
            radius=math.sqrt(width),
            antipodal=len(mixture) == 1,
            seed=seed,
        )
        for seed in range(glasses)
    ]
    assert all(reading.complete for reading in readings)
    rival = math.exp(width * critical_exponent(mixture))
    total = estimate([reading.total for reading in readings])
    assert abs(total.mean - mean_critical_points(plan).value) < 4 * total.stderr
    assert abs(total.mean - width * rival) > 8 * total.stderr
    for k in range(width):
        result = estimate([reading.counts[k] for reading in readings])
        wanted = mean_critical_points(plan, index=k).value
        assert abs(result.mean - wanted) < 4 * result.stderr
        assert abs(result.mean - rival) > 4 * result.stderr


def test_energies_agree_and_the_other_sign_is_rejected():
    plan = SpinGlassBlueprint(width=3, mixture={2: 0.5, 3: 0.5})
    level, result = -0.5, []
    for seed in range(24):
        reading = instruments.critical_points(
            networks.build(plan, seed=seed), dimension=3, radius=math.sqrt(3), seed=seed
        )
        result.append(reading.below(3 * level))
    for k in (0, 1):
        counted = estimate(np.array(result)[:, k].astype(float))
        mean = mean_critical_points(plan, index=k, below=level)
        error = counted.stderr + mean.value * mean.error
        assert abs(counted.mean - mean.value) < 4 * error
        rival = mean_critical_points(plan, index=k, below=-level)
        assert abs(counted.mean - rival.value) > 4 * error
