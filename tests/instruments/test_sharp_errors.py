"""Sharp errors in float32 are calibrated: the float64 eigenvalues lie within them."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from tests.cases import CASES, conv_block
from theodolite.instruments import (
    Hessian,
    extreme_eigenvalues,
    hessian,
    sharpness_along,
)
from theodolite.instruments.operators.rounding_noise import eigenvalue_noise
from theodolite.instruments.solvers.eigenpairs import Search, searched


def perceptron(norm, activation):
    layers = []
    for width in (8, 16):
        layers += [nn.Linear(width, 16), norm(16), activation()]
    return nn.Sequential(*layers, nn.Linear(16, 3))


def convolutions(norm):
    head = nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), conv_block(norm, 4), *head)


def nothing(_):
    return nn.Identity()


BUILDERS = {c.name: (c.model, c.shape) for c in CASES if c.double_backward}
BUILDERS |= {
    "plain": (lambda: perceptron(nothing, nn.Tanh), (8,)),
    "relu": (lambda: perceptron(nothing, nn.ReLU), (8,)),
    "batch norm": (lambda: perceptron(nn.BatchNorm1d, nn.Tanh), (8,)),
    "layer norm": (lambda: perceptron(nn.LayerNorm, nn.GELU), (8,)),
    "conv": (lambda: convolutions(nothing), (1, 4, 4)),
    "conv batch norm": (lambda: convolutions(nn.BatchNorm2d), (1, 4, 4)),
}
STATES = ("fresh", "wild", "trained")


def made(name, state, seed):
    """Return a model and its data in float32, and the same in float64."""
    build, shape = BUILDERS[name]
    torch.manual_seed(seed)
    model, x, y = build().float(), torch.randn(16, *shape), torch.randint(0, 3, (16,))
    if state == "wild":
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(std=0.5)
    if state == "trained":
        descent = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
        for _ in range(60):
            descent.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # none diverges
            descent.step()
    return (model, (x, y)), (copy.deepcopy(model).double(), (x.double(), y))


def off_over_errors(name, state, seed, **asked):
    """Return how many times its sharp error each eigenvalue is off."""
    narrow, wide = made(name, state, seed)
    shared = {"loss": nn.CrossEntropyLoss(), "norm_mode": "batch"}
    exact = np.linalg.eigvalsh(hessian(*wide, **shared).matrix)[::-1]
    asked = {"k": 2, "method": "products", "max_matvecs": 400, "seed": seed, **asked}
    found = extreme_eigenvalues(*narrow, **shared, **asked)
    return np.abs(found.eigenvalues - exact[: asked["k"]]) / found.sharp_errors


# Where |yᵀEy| of one more product, or a small share in a product with several vectors,
# understated what rounding had done to the value.
@pytest.mark.parametrize(("tol", "k"), [(1e-6, 2), (1e-3, 1)])
def test_trained_networks_are_within_their_sharp_errors(tol, k):
    nets = [("plain", 1), ("relu", 1), ("relu", 2), ("group_norm", 0)]
    ratios = [
        off_over_errors(name, "trained", seed, tol=tol, k=k) for name, seed in nets
    ]
    assert np.max(ratios) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", [{"tol": 1e-6}, {"tol": 1e-3}, {"tol": 1e-3, "stop": "value"}]
)
def test_float32_is_within_sharp_errors_over_networks_states_and_seeds(asked):
    nets = [(n, s, seed) for n in BUILDERS for s in STATES for seed in range(5)]
    ratios = np.concatenate([off_over_errors(*net, **asked) for net in nets])
    assert len(nets) >= 200
    assert np.mean(ratios <= 1) >= 0.99
    assert np.median(ratios) > 0.01  # nor are they so wide as to say nothing


def rounding_over_bounds(name, state, seed):
    """Return what rounding does to three vectors and values, in units of its bounds.

    One product bounds it, as where the tolerance allows much.
    """
    narrow, wide = made(name, state, seed)
    shared = {"loss": nn.CrossEntropyLoss(), "norm_mode": "batch"}
    ours, exact = Hessian(*narrow, **shared), Hessian(*wide, **shared)
    search = Search(3, "magnitude", 1e-3, 400, 2**30, False, "residual", seed)
    pairs = searched(ours, search)
    values, vectors, enough = pairs.values, pairs.vectors, np.full(3, np.inf)
    before = ours.passes
    noise = eigenvalue_noise(ours, values, vectors, enough, pairs.foreseen)
    assert ours.passes == before + 1
    wide = vectors.double()
    products = torch.stack([exact @ v for v in wide])
    foreseen = torch.stack([pairs.foreseen(unit) for unit in np.eye(3)])
    off = (products - foreseen).norm(dim=1).numpy()
    # Vectors are of length 1 up to rounding.
    forms, squares = (products * wide).sum(1).numpy(), wide.square().sum(1).numpy()
    moved = np.abs(forms - values * squares)
    return np.array([off / noise.norms, moved / noise.shifts])


def test_one_float64_product_bounds_what_rounding_does():
    nets = [(name, STATES[n % 3], n) for n, name in enumerate(BUILDERS)]
    ratios = np.concatenate([rounding_over_bounds(*net) for net in nets], axis=1)
    few = 2 * np.sqrt(0.95 * 0.05 / ratios.shape[1])  # of so many the share varies
    assert np.all(np.mean(ratios <= 1, axis=1) >= 0.95 - few)
    assert np.all(np.median(ratios, axis=1) > 0.01)


@pytest.mark.slow
def test_one_float64_product_bounds_rounding_over_networks_states_and_seeds():
    nets = [(n, s, seed) for n in BUILDERS for s in STATES for seed in range(5)]
    ratios = np.concatenate([rounding_over_bounds(*net) for net in nets], axis=1)
    assert len(nets) >= 200
    assert np.all(np.mean(ratios <= 1, axis=1) >= 0.95)
    assert np.all(np.median(ratios, axis=1) > 0.01)


def grown(model, step):
    """Make all weights larger, which changes the curvature."""
    for parameter in model.parameters():
        parameter.mul_(1.5)


def offset(model, step):
    """Move what the norm takes away again: the curvature stays, digits are lost."""
    model[0].bias.add_(3 * 4.0**step)


def offset_beside_a_table(model, step):
    """Do the same where the norm of all weights is that of frozen embeddings."""
    offset(model, step)


@pytest.mark.parametrize(
    ("name", "change"),
    [("relu", grown), ("batch norm", offset), ("batch norm", offset_beside_a_table)],
)
def test_rounding_is_measured_again_along_a_run(name, change):
    (model, batch), _ = made(name, "fresh", 2)
    if change is offset_beside_a_table:
        model[0].table = nn.Parameter(torch.full((500, 500), 8.0), requires_grad=False)
    shared = {"loss": nn.CrossEntropyLoss(), "norm_mode": "batch"}
    probe = sharpness_along(model, batch, **shared, tol=1e-6)
    exact = []
    for step in range(6):
        probe(step)
        wide = copy.deepcopy(model).double(), (batch[0].double(), batch[1])
        exact.append(np.linalg.eigvalsh(hessian(*wide, **shared).matrix)[-1])
        with torch.no_grad():
            change(model, step)
    reading = probe.reading()
    off = np.abs(reading.eigenvalues[:, 0] - exact)
    assert np.all(off <= reading.sharp_errors[:, 0])
    assert off[-1] > 10 * off[0]  # rounding did grow
