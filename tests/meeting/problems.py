"""Random problems, measured Hessians, and how theory and measurement are compared."""

import numpy as np
import torch
from hypothesis import strategies as st

from theodolite.core import ShortcutBlueprint, column_major
from theodolite.instruments import HalfSquareLoss, hessian
from theodolite.networks import build

SMOOTH_AT_ZERO = [
    "identity",
    "tanh",
    "symmetric_sigmoid",
    "silu",
    "polynomial:1.5,1",
    "polynomial:2,1",
    "polynomial:-0.7,0.3,0.2",
]
SMOOTH = [*SMOOTH_AT_ZERO, "exp"]


@st.composite
def problems(draw, shortcut, *, linear=False):
    """Draw a blueprint and a dataset that fits it."""
    n = draw(st.sampled_from(shortcut))
    width = draw(st.integers(2, 4))
    units = draw(st.integers(1, 3))
    names = {}
    if not linear:
        names = {
            "pre": draw(st.sampled_from(SMOOTH)),
            "mid": draw(st.sampled_from(SMOOTH_AT_ZERO)),
            "post": draw(st.sampled_from(SMOOTH_AT_ZERO)),
            "bias": draw(st.booleans()) and n > 1,
        }
    plan = ShortcutBlueprint(width=width, depth=n * units, shortcut=n, **names)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    samples = draw(st.integers(width, 12))
    return plan, rng.normal(size=(samples, width)), rng.normal(size=(samples, width))


def measured(network, x, y):
    """Measure a network's Hessian and bring it into the order of the closed forms."""
    batch = (torch.as_tensor(x), torch.as_tensor(y))
    reading = hessian(network, batch, loss=HalfSquareLoss(), norm_mode="eval")
    order = column_major([shape for _, shape in reading.layout])
    return reading.matrix[np.ix_(order, order)]


def at_zero(plan, x, y):
    """Measure the Hessian of a blueprint at zero weights."""
    return measured(build(plan.with_(init="zero"), seed=0), x, y)


def assert_agree(theory, measurement):
    """Assert equality at rtol 1e-10; zeros are compared on the scale of the matrix."""
    scale = max(np.abs(theory).max(), np.abs(measurement).max(), 1e-300)
    np.testing.assert_allclose(measurement, theory, rtol=1e-10, atol=1e-12 * scale)


def assert_differ(rival, measurement, by=1e-6):
    """Assert that a rival differs by much more than rounding."""
    scale = np.abs(measurement).max()
    assert np.abs(rival - measurement).max() > by * scale
