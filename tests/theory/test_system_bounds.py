"""Bounds of systems: exact where they are known, infinite where they must be."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from theodolite.core import (
    NONLINEARITIES,
    AffineLayer,
    BatchNormLayer,
    ConfigError,
    ConvolutionLayer,
    NonlinearLayer,
    ResidualLayer,
    SystemBlueprint,
    TheodoliteError,
    normalised_residual,
    stream,
)
from theodolite.theory import (
    Extent,
    ParameterBall,
    cost_bounds,
    extent_of,
    layer_bounds,
    nonlinearity_bounds,
    smoothness_bound,
    system_bounds,
)
from theodolite.theory.systems.nonlinearities import nonlinearity_derivatives
from theodolite.theory.systems.parameterisations import (
    NORMALISED_CURVATURE,
    parameterisation_bounds,
)

GRID = np.linspace(-12, 12, 240001)
ROUGH = ("relu", "three_halves")


@pytest.mark.parametrize("name", NONLINEARITIES)
def test_bounds_of_nonlinearities_are_reached_and_never_passed(name):
    value, slope, curvature = nonlinearity_derivatives(name, GRID)
    bounds = nonlinearity_bounds(name, 12.0)
    assert np.abs(value).max() <= bounds.value * (1 + 1e-12)
    assert np.abs(slope).max() <= bounds.slope * (1 + 1e-12)
    assert_allclose(np.abs(slope).max(), bounds.slope, rtol=1e-4)
    if name in ROUGH:
        assert bounds.curvature == math.inf
        assert bounds.why
        return
    assert np.abs(curvature).max() <= bounds.curvature * (1 + 1e-12)
    assert_allclose(np.abs(curvature).max(), bounds.curvature, rtol=1e-3)
    steps = np.diff(slope) / np.diff(GRID)
    assert np.abs(steps).max() <= bounds.curvature * (1 + 1e-8)


@pytest.mark.parametrize("name", NONLINEARITIES)
def test_derivatives_of_nonlinearities_are_those_of_differences(name):
    z, step = np.linspace(-3.05, 3.07, 51), 1e-6
    up, down = (nonlinearity_derivatives(name, z + s) for s in (step, -step))
    _, slope, curvature = nonlinearity_derivatives(name, z)
    assert_allclose((up[0] - down[0]) / (2 * step), slope, atol=1e-8)
    assert_allclose((up[1] - down[1]) / (2 * step), curvature, atol=1e-8)


def test_the_curvature_of_entry_normalisation_is_its_largest_second_derivative():
    eps = 0.3
    w = np.linspace(-4, 4, 80001)
    second = -3 * eps * w * (eps + w**2) ** -2.5
    assert_allclose(np.abs(second).max() * eps, NORMALISED_CURVATURE, rtol=1e-6)
    assert_allclose(NORMALISED_CURVATURE, 0.8586501034, rtol=1e-9)


def test_a_normalised_matrix_in_a_ball_is_no_larger_than_the_bound_and_reaches_it():
    layer = AffineLayer(into=3, out=4, parameterisation="weight_norm", eps=0.5)
    ball = ParameterBall(radius=1.5)
    bound = parameterisation_bounds(layer, ball).value
    alike = np.tile([1.5 / 2, 0.0, 0.0], (4, 1))  # four equal rows, of norm 1.5 in all
    matrix = alike / np.sqrt(0.5 + (alike**2).sum(1, keepdims=True))
    assert_allclose(np.linalg.norm(matrix, 2), bound, rtol=1e-12)
    assert parameterisation_bounds(layer).value == layer.weight_bound == 2.0


def test_one_layer_has_the_closed_form():
    x = stream(0).normal(size=(3, 4))
    plan = normalised_residual(inputs=4, widths=(3,), eps=0.7)
    size = np.linalg.norm(x, 2)
    wanted = size**2 / (6 * 0.7) + math.sqrt(2 / 3) * NORMALISED_CURVATURE * size / 0.7
    assert_allclose(smoothness_bound(plan, x, "cross_entropy"), wanted, rtol=1e-10)


def test_smoothness_goes_with_one_over_eps():
    x = stream(1).normal(size=(3, 4))
    result = [
        smoothness_bound(
            normalised_residual(inputs=4, widths=(4, 3, 3), eps=eps), x, "logistic"
        )
        for eps in (1.0, 1e-3)
    ]
    assert_allclose(result[1] / result[0], 1e3, rtol=1e-9)


def test_what_is_unbounded_is_infinite_and_said():
    tanh = NonlinearLayer(activation="tanh")
    plain = AffineLayer(into=3, out=3)
    plan = SystemBlueprint(inputs=3, layers=(plain, tanh, plain))
    data = extent_of(np.eye(3))
    result = system_bounds(plan, data)
    assert result.derivative_lipschitz == math.inf
    assert [reason.split(" (")[0] for reason in result.reasons] == [
        "layer 0",
        "layer 2",
    ]
    assert "unbounded" in result.reasons[0]
    balls = (ParameterBall(radius=1.0),) * 3
    inside = system_bounds(plan, data, balls)
    assert inside.derivative_lipschitz < math.inf
    assert inside.reasons == ()
    relu = plan.with_(layers=(plain, NonlinearLayer(activation="relu"), plain))
    rough = system_bounds(relu, data, balls)
    assert rough.derivative_lipschitz == math.inf
    assert rough.derivative < math.inf
    assert "layer 1 (nonlinearity): ReLU's slope jumps" in rough.reasons[0]


def test_a_roughness_before_all_parameters_does_no_harm():
    layers = (NonlinearLayer(activation="relu"), AffineLayer(into=3, out=2))
    plan = SystemBlueprint(inputs=3, layers=layers)
    result = system_bounds(plan, extent_of(np.eye(3)))
    assert result.derivative < 2
    assert result.derivative_lipschitz == 0.0


def test_a_residual_block_adds_the_identity():
    layer = AffineLayer(into=3, out=3, parameterisation="weight_norm", scale=0.2)
    data = extent_of(np.eye(3))
    branch = layer_bounds(layer, data)
    block = layer_bounds(ResidualLayer(branch=(layer,)), data)
    assert_allclose(block.input_slope, 1 + branch.input_slope)
    assert_allclose(block.parameter_slope, branch.parameter_slope)
    assert_allclose(block.input_curvature, branch.input_curvature, rtol=1e-12)
    assert_allclose(block.mixed_curvature, branch.mixed_curvature, rtol=1e-12)


def test_batch_norm_is_bounded_whatever_comes():
    layer = BatchNormLayer(features=2, eps=0.25)
    result = layer_bounds(layer, Extent(samples=9, shape=(2,)))
    assert_allclose(result.outputs.frobenius, math.sqrt(18))
    assert result.input_slope == 2.0
    assert_allclose(result.input_curvature, NORMALISED_CURVATURE / (0.25 * 3))


@pytest.mark.parametrize(
    ("call", "hints"),
    [
        (lambda: AffineLayer(into=2, out=2, eps=0.0), ("eps is 0.0", "positive")),
        (lambda: BatchNormLayer(features=2, eps=-1.0), ("eps is -1.0", "positive")),
        (lambda: AffineLayer(into=2, out=2, scale=math.nan), ("scale is nan",)),
        (lambda: AffineLayer(into=0, out=2), ("into is 0", "whole number")),
        (
            lambda: AffineLayer(into=2, out=2, parameterisation="weigth_norm"),
            ("unknown parameterisation", "mean 'weight_norm'"),
        ),
        (
            lambda: NonlinearLayer(activation="tahn"),
            ("unknown nonlinearity", "mean 'tanh'"),
        ),
        (lambda: SystemBlueprint(inputs=2, layers=()), ("no layer", "tuple")),
        (lambda: SystemBlueprint(inputs=2, layers=("tanh",)), ("layers[0] is a str",)),
        (
            lambda: SystemBlueprint(inputs=3, layers=(AffineLayer(into=2, out=2),)),
            ("shape (3,)", "affine", "(2,)"),
        ),
        (
            lambda: SystemBlueprint(
                inputs=(1, 4, 4),
                layers=(
                    ResidualLayer(
                        branch=(ConvolutionLayer(into=1, out=1, kernel=(3, 3)),)
                    ),
                ),
            ),
            ("(1, 2, 2) from (1, 4, 4)", "skip"),
        ),
        (
            lambda: ConvolutionLayer(into=1, out=1, kernel=(5, 5)).shape_after(
                (1, 3, 3)
            ),
            ("kernel of (5, 5)", "padding"),
        ),
        (lambda: normalised_residual(inputs=2, widths=(2, 3)), ("never grow",)),
        (lambda: ParameterBall(radius=-1.0), ("radius is -1.0", "math.inf")),
        (lambda: extent_of([1.0, 2.0]), ("shape (2,)", "first axis")),
        (
            lambda: system_bounds(
                normalised_residual(inputs=2, widths=(2,)), extent_of(np.eye(3))
            ),
            ("shape (3,)", "(2,)"),
        ),
        (
            lambda: system_bounds(
                normalised_residual(inputs=2, widths=(2,)), extent_of(np.eye(2)), ()
            ),
            ("0 balls", "1 layers"),
        ),
        (
            lambda: cost_bounds("cross_entropy", Extent(samples=2, shape=(1,))),
            ("one class",),
        ),
        (
            lambda: cost_bounds("hinge", Extent(samples=2, shape=(2,))),
            ("unknown cost 'hinge'",),
        ),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_bad_input_is_refused_in_one_sentence(call, hints):
    with pytest.raises(TheodoliteError) as caught:
        call()
    message = str(caught.value)
    assert all(hint in message for hint in hints), message
    assert "\n" not in message


def test_balls_of_the_wrong_kind_are_refused():
    with pytest.raises(ConfigError, match="radius"):
        ParameterBall(radius=math.nan)
