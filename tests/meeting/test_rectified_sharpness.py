"""The curvature of a last layer over normalised units, by theory and by autograd."""

import numpy as np
import pytest
import torch

from theodolite.core import ClassifierBlueprint, ConfigError
from theodolite.networks import build
from theodolite.theory import rectified_sharpness
from theodolite.training import ClassifierRecipe, LabelledSamples, train_classifiers

WIDE = ClassifierBlueprint(inputs=(400,), width=96, depth=2)


def samples(count):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 400))
    return x, np.where(x[:, 0] > 0, 1.0, -1.0)


def test_curvature_is_that_of_rectified_normal_units():
    """The rival leaves out that rectified units have means: a curvature near 1."""
    x, _ = samples(4000)
    network = build(WIDE, seed=1, dtype=torch.float64)
    with torch.no_grad():
        h = network.read_features(torch.as_tensor(x)).numpy()
    result = np.linalg.eigvalsh(2 * h.T @ h / len(h))[-1]
    wanted = rectified_sharpness(96)
    assert abs(result / wanted - 1) < 0.02
    assert result > 10


@pytest.mark.parametrize(("share", "status"), [(0.5, "finished"), (2.0, "diverged")])
def test_descent_diverges_beyond_the_limit_and_not_below(share, status):
    x, y = samples(256)
    rate = share * 2 * (1 + 0.9) / rectified_sharpness(96)
    recipe = ClassifierRecipe(epochs=60, batch_size=256, rate=rate)
    (run,) = train_classifiers([WIDE], LabelledSamples(x, y), recipe=recipe, seeds=[0])
    grown = run.status == "diverged" or run.last.train_loss > 1e3
    assert grown == (status == "diverged")


def test_no_units_are_refused():
    with pytest.raises(ConfigError, match="features is 0"):
        rectified_sharpness(0)
