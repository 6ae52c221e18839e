"""Each constant of a layer: never passed at random points, reached at special ones."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from tests.certificates.systems import without_state
from theodolite.certificates import recognise
from theodolite.certificates.bounds import balls_about
from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    ConvolutionLayer,
    NonlinearLayer,
    ResidualLayer,
    SystemBlueprint,
)
from theodolite.networks import build
from theodolite.theory import extent_of, layer_bounds, system_bounds

CONSTANTS = (
    "input_slope",
    "parameter_slope",
    "input_curvature",
    "mixed_curvature",
    "parameter_curvature",
)


def sampled(network, z):
    """Return norms of all first and second derivatives of a network, by autodiff."""
    parameters = dict(network.named_parameters())
    names, count = list(parameters), z.numel()
    sizes = [parameters[name].numel() for name in names]

    def run(flat):
        held = {
            name: part.view_as(parameters[name])
            for name, part in zip(names, flat[count:].split(sizes), strict=True)
        }
        batch = flat[:count].view_as(z)
        return torch.func.functional_call(network, held, (batch,)).reshape(-1)

    def slopes(flat):
        return torch.autograd.functional.jacobian(run, flat, create_graph=True)

    parts = [z.reshape(-1), *(one.detach().reshape(-1) for one in parameters.values())]
    point = torch.cat(parts)
    first = slopes(point).detach().numpy()
    second = torch.autograd.functional.jacobian(slopes, point).numpy()
    inner, own = slice(0, count), slice(count, None)
    return {
        "input_slope": norm(first[:, inner]),
        "parameter_slope": norm(first[:, own]),
        "input_curvature": bilinear(second[:, inner, inner]),
        "mixed_curvature": bilinear(second[:, inner, own]),
        "parameter_curvature": bilinear(second[:, own, own]),
    }


def norm(matrix):
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


def bilinear(tensor):
    """Return a lower bound of sup ‖T(u, v)‖ over unit vectors, as a rule the norm."""
    if not tensor.size:
        return 0.0
    rng, best = np.random.default_rng(0), 0.0
    for _ in range(3):
        v = rng.normal(size=tensor.shape[2])
        for _ in range(6):
            v /= np.linalg.norm(v) or 1.0
            _, values, rows = np.linalg.svd(tensor @ v, full_matrices=False)
            u = rows[0]
            _, values, rows = np.linalg.svd(
                np.einsum("oab,a->ob", tensor, u), full_matrices=False
            )
            v = rows[0]
        best = max(best, float(values[0]))
    return best


def affine(way, **changes):
    return AffineLayer(**({"into": 2, "out": 2, "parameterisation": way} | changes))


KINDS = {
    "plain": affine("plain", scale=0.7),
    "plain with bias": affine("plain", bias=True),
    "weight norm": affine("weight_norm", eps=0.4, scale=1.3),
    "entry norm": affine("entry_norm", eps=0.4, bias=True),
    "length and direction": affine("length_direction"),
    "convolution": ConvolutionLayer(
        into=1, out=2, kernel=(2, 2), padding=(1, 0), bias=True
    ),
    "normalised convolution": ConvolutionLayer(
        into=1, out=1, kernel=(2, 1), parameterisation="weight_norm", eps=0.3
    ),
    "batch norm": BatchNormLayer(features=2, eps=0.3, affine=True),
    "tanh": NonlinearLayer(activation="tanh"),
    "gelu": NonlinearLayer(activation="gelu"),
    "residual": ResidualLayer(
        branch=(
            affine("weight_norm", out=1),
            NonlinearLayer(activation="silu"),
            affine("plain", into=1),
        )
    ),
}


def shape_of(layer):
    return (1, 2, 2) if isinstance(layer, ConvolutionLayer) else (2,)


def known(layer, network, z, radius):
    result = recognise(network, shape_of(layer) if z is None else tuple(z.shape[1:]))
    (ball,) = balls_about((layer,), result.weights, radius)
    return layer_bounds(layer, extent_of(z.numpy()), ball)


@pytest.mark.parametrize("name", KINDS)
def test_no_constant_is_passed_at_random_points(name):
    layer, rng = KINDS[name], np.random.default_rng(3)
    shape = shape_of(layer)
    network = without_state(
        build(SystemBlueprint(inputs=shape, layers=(layer,)), seed=0)
    )
    for _ in range(2):
        with torch.no_grad():
            for parameter in network.parameters():
                drawn = rng.normal(size=tuple(parameter.shape))
                parameter.copy_(torch.as_tensor(10 ** rng.uniform(-1, 1) * drawn))
        z = torch.as_tensor(rng.normal(size=(2, *shape)) * 10 ** rng.uniform(-1, 1))
        bounds = known(layer, network, z, 0.0)
        for constant, value in sampled(network, z).items():
            limit = getattr(bounds, constant)
            assert value <= limit * (1 + 1e-9) + 1e-12, (constant, value, limit)


QUARTER = {"weight": 0.5}  # w² = ε/4 for ε = 1, where the second derivative is largest
ONE = {"into": 1, "out": 1}
CENTRED = math.sqrt(2 * 0.3 / 4 / 2)  # two samples ±y with 2y² a quarter of 2ε
INFLECTION = math.atanh(1 / math.sqrt(3))
SPECIAL = [
    ("plain", affine("plain", **ONE), {"weight": 3.0}, [[2.0]], CONSTANTS),
    ("rows at zero", affine("weight_norm", **ONE), {"weight": 0.0}, [[2.0]],
     ("parameter_slope", "mixed_curvature")),
    ("rows", affine("weight_norm", **ONE), QUARTER, [[2.0]], ("parameter_curvature",)),
    ("entries", affine("entry_norm", **ONE), QUARTER, [[2.0]],
     ("parameter_curvature",)),
    ("lengths", affine("length_direction", into=2, out=1),
     {"lengths": 3.0, "weight": 0.5}, [[2.0, 0.0], [0.0, 2.0]], ("parameter_slope",)),
    ("kernels", ConvolutionLayer(into=1, out=1, kernel=(2, 2), stride=(2, 2)),
     {"weight": 1.0}, np.ones((1, 1, 4, 4)), ("input_slope", "mixed_curvature")),
    ("kernels that overlap", ConvolutionLayer(into=1, out=1, kernel=(1, 2)),
     {"weight": 1.0}, np.ones((1, 1, 1, 2)), ("mixed_curvature_nearly",)),
    ("a norm at rest", BatchNormLayer(features=1, eps=0.3, affine=True),
     {"weight": 1.0, "bias": 0.0}, [[1.0], [1.0]],
     ("input_slope", "parameter_slope", "mixed_curvature")),
    ("a norm that bends", BatchNormLayer(features=1, eps=0.3), {},
     [[CENTRED], [-CENTRED]], ("input_curvature",)),
    ("tanh at rest", NonlinearLayer(activation="tanh"), {}, [[0.0]], ("input_slope",)),
    ("tanh that bends", NonlinearLayer(activation="tanh"), {}, [[INFLECTION]],
     ("input_curvature",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("layer", "values", "z", "sharp"),
    [s[1:] for s in SPECIAL],
    ids=[s[0] for s in SPECIAL],
)
def test_constants_are_reached_at_special_points(layer, values, z, sharp):
    z = torch.as_tensor(np.array(z, dtype=float))
    plan = SystemBlueprint(inputs=tuple(z.shape[1:]), layers=(layer,))
    network = without_state(build(plan, seed=0))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.fill_(values[name.rpartition(".")[2]])
    # A normalised matrix has its constants everywhere, others where the weights are.
    normalised = getattr(layer, "parameterisation", "").endswith("norm")
    bounds = known(layer, network, z, math.inf if normalised else 0.0)
    result = sampled(network, z)
    for constant in sharp:
        if constant.endswith("_nearly"):
            constant = constant.removesuffix("_nearly")
            assert result[constant] >= 0.7 * getattr(bounds, constant)
        else:
            assert_allclose(result[constant], getattr(bounds, constant), rtol=1e-6)


def test_a_pixel_in_two_patches_counts_twice():
    """A flat kernel on a long image stretches by nearly the root of the overlap."""
    layer = ConvolutionLayer(into=1, out=1, kernel=(1, 2))
    network = build(SystemBlueprint(inputs=(1, 1, 30), layers=(layer,)), seed=0)
    with torch.no_grad():
        network.layers[0].weight.fill_(1.0)
    z = torch.ones(1, 1, 1, 30, dtype=torch.float64)
    bounds = known(layer, network, z, 0.0)
    matrix = np.eye(29, 30) + np.eye(29, 30, 1)
    assert 0.99 < np.linalg.norm(matrix, 2) / bounds.input_slope <= 1


def test_composition_is_exact_for_numbers():
    """Positive numbers add up without loss: F = (1 + ab) c x, in a block behind c."""
    a, b, c, x = 2.0, 3.0, 0.5, 7.0
    one = AffineLayer(into=1, out=1)
    plan = SystemBlueprint(inputs=1, layers=(one, ResidualLayer(branch=(one, one))))
    network = build(plan, seed=0)
    with torch.no_grad():
        for parameter, value in zip(network.parameters(), (c, a, b), strict=True):
            parameter.fill_(value)
    weights = recognise(network, (1,)).weights
    bounds = system_bounds(
        plan, extent_of([[x]]), balls_about(plan.layers, weights, 0.0)
    )
    assert bounds.groups == ("0", "1.branch.0", "1.branch.1")
    assert_allclose(bounds.slopes, [(1 + a * b) * x, b * c * x, a * c * x])
    wanted = [[0, b * x, a * x], [b * x, 0, c * x], [a * x, c * x, 0]]
    assert_allclose(bounds.curvatures, wanted)
    assert bounds.outputs.frobenius == (1 + a * b) * c * x


def test_curvature_of_a_nonlinearity_is_that_of_the_whole():
    x, name = 1.5, "tanh"
    plan = SystemBlueprint(
        inputs=1,
        layers=(AffineLayer(into=1, out=1), NonlinearLayer(activation=name)),
    )
    network = build(plan, seed=0)
    with torch.no_grad():
        network.layers[0].weight.fill_(INFLECTION / x)
    weights = recognise(network, (1,)).weights
    bounds = system_bounds(
        plan, extent_of([[x]]), balls_about(plan.layers, weights, 0.0)
    )
    result = sampled(network, torch.tensor([[x]], dtype=torch.float64))
    assert_allclose(bounds.derivative_lipschitz, result["parameter_curvature"])
