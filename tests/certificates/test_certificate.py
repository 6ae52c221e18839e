"""Certificates of real modules: what they say."""

import math
import time

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from tests.certificates.chains import CHAINS, CLASSES, SAME, double, inputs, residual
from theodolite.certificates import Certificate, certificate, recognise
from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    NonlinearLayer,
    SystemBlueprint,
    TheodoliteError,
    normalised_residual,
)
from theodolite.instruments import HalfSquareLoss, hessian
from theodolite.networks import build
from theodolite.theory import smoothness_bound, system_jacobian


def gradient_of(model, x, y, loss):
    parameters = list(model.parameters())
    value = loss(model(x), y)
    parts = torch.autograd.grad(value, parameters)
    return float(value.detach()), sum(float(p.square().sum()) for p in parts)


def test_numbers_of_a_residual_network_are_those_of_theory_and_autodiff():
    network, x = residual(), inputs(4, 5)
    result = certificate(network, (x, CLASSES), "cross_entropy")
    plan = network.blueprint
    weights = recognise(network, (5,)).weights
    jacobian = system_jacobian(plan, weights, x.numpy())
    assert result.smoothness == smoothness_bound(plan, x.numpy(), "cross_entropy")
    assert result.step == pytest.approx(1 / result.smoothness)
    least = np.linalg.svd(jacobian, compute_uv=False)[-1] ** 2
    assert abs(result.kernel_smallest - least) <= result.kernel_error
    assert 0 < result.kernel_bound <= result.kernel_smallest
    assert result.kernel_bound == pytest.approx(result.terms.sum())
    loss, square = gradient_of(network, x, CLASSES, nn.CrossEntropyLoss())
    assert result.loss == pytest.approx(loss, rel=1e-12)
    assert result.ratio == pytest.approx(square / (loss - result.floor), rel=1e-9)
    assert result.ratio_bound <= result.ratio
    assert all(result.applies(theorem) for theorem in ("4.5", "4.7", "5.1"))


MODES = ("batch", "full", "eval")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CHAINS)
def test_chains_of_torch_layers_are_certified_within_a_radius(name, mode):
    model, x = CHAINS[name](), inputs(4, 5)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    loss = nn.CrossEntropyLoss()
    result = certificate(model, (x, CLASSES), loss, norm_mode=mode, radius=0.05)
    assert math.isfinite(result.smoothness)
    assert result.radius == 0.05
    assert result.kernel_bound <= result.kernel_smallest + result.kernel_error
    assert not result.applies("4.5")
    after = model.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert all(p.grad is None for p in model.parameters())
    # The step that is certified does what it promises.
    model.train(mode != "eval")
    value, square = gradient_of(model, x, CLASSES, loss)
    loss(model(x), CLASSES).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= result.step * parameter.grad
        moved = float(loss(model(x), CLASSES))
    assert result.step > 0
    assert moved <= value - result.step / 2 * square + 1e-14


def test_images_are_certified():
    model = double(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.Tanh(),
        weight_norm(nn.Conv2d(2, 2, 2, stride=2)), nn.Flatten(), nn.Linear(8, 3),
    )  # fmt: skip
    x = inputs(4, 1, 4, 4)
    result = certificate(model, (x, inputs(4, 3)), nn.MSELoss(), radius=0.01)
    assert math.isfinite(result.smoothness)
    assert result.kernel_bound <= result.kernel_smallest + result.kernel_error
    loss, square = gradient_of(model, x, inputs(4, 3), nn.MSELoss())
    assert result.loss == pytest.approx(loss, rel=1e-12)
    assert result.ratio == pytest.approx(square / loss, rel=1e-9)


def test_what_is_unbounded_is_infinite_and_named():
    model = double(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    result = certificate(model, (inputs(4, 5), CLASSES), "cross_entropy")
    assert (result.smoothness, result.step) == (math.inf, 0.0)
    assert any(
        "layer 0 (affine): its weights are unbounded" in r for r in result.reasons
    )
    within = certificate(model, (inputs(4, 5), CLASSES), "cross_entropy", radius=0.1)
    assert within.smoothness == math.inf
    assert [r for r in within.reasons if "ReLU's slope jumps" in r]
    (row,) = [
        row
        for row in within.hypotheses
        if row["theorem"] == "Theorem 4.5" and row["hypothesis"].startswith("nonlin")
    ]
    assert not row["holds"]
    assert "layer 1: ReLU" in row["why"]


@pytest.mark.parametrize(
    ("cost", "targets", "torch_loss"),
    [
        ("cross_entropy", CLASSES, nn.CrossEntropyLoss()),
        ("square", inputs(4, 3, seed=2), HalfSquareLoss()),
        (nn.MSELoss(), inputs(4, 3, seed=2), nn.MSELoss()),
        (nn.BCEWithLogitsLoss(), (inputs(4, 3) > 0).double(), nn.BCEWithLogitsLoss()),
    ],
)
def test_costs_are_those_of_torch(cost, targets, torch_loss):
    network, x = residual(1), inputs(4, 5)
    result = certificate(network, (x, targets), cost)
    loss, square = gradient_of(network, x, targets, torch_loss)
    assert result.loss == pytest.approx(loss, rel=1e-12)
    assert result.ratio * (loss - result.floor) == pytest.approx(square, rel=1e-9)
    assert result.floor <= result.loss
    assert 0 < result.ratio_bound <= result.ratio


def test_signs_and_bits_are_the_same_cost():
    network, x = residual(1), inputs(4, 5)
    bits = (inputs(4, 3) > 0).double()
    one = certificate(network, (x, bits), nn.BCEWithLogitsLoss())
    other = certificate(network, (x, 2 * bits - 1), "logistic")
    assert (one.loss, one.smoothness) == (other.loss, other.smoothness)


def test_fifty_layers_take_less_than_ten_seconds():
    plan = normalised_residual(inputs=16, widths=(16,) * 50)
    network, x = build(plan, seed=0), inputs(8, 16)
    start = time.process_time()
    result = certificate(network, (x, torch.arange(8)), "cross_entropy")
    assert time.process_time() - start < 10
    assert result.terms.shape == (50,)
    assert 0 < result.kernel_bound <= result.kernel_smallest
    assert 0 < result.step


def test_a_certificate_is_kept_in_a_file(tmp_path):
    result = certificate(residual(), (inputs(4, 5), CLASSES), "cross_entropy")
    result.save(tmp_path / "kept")
    again = Certificate.load(tmp_path / "kept")
    assert again.to_dict() == result.to_dict()
    assert again.applies("5.1")
    rows = result.rows()
    assert rows.value(quantity="terms", layer="layers.0") == result.terms[0]
    lines = str(result).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert any("Theorem 5.1, corrected fails" in line for line in lines)


def test_single_precision_is_near_double():
    network = residual(1)
    x = inputs(4, 5)
    options = {"cost": "cross_entropy", "measure_kernel": False}
    fine = certificate(network, (x, CLASSES), **options)
    coarse = certificate(network.float(), (x.float(), CLASSES), **options)
    assert coarse.smoothness == pytest.approx(fine.smoothness, rel=1e-5)
    assert coarse.kernel_bound == pytest.approx(fine.kernel_bound, rel=1e-3)
    assert abs(coarse.ratio - fine.ratio) <= coarse.ratio_error


def test_without_asking_for_a_theorem_what_fails_is_said():
    result = certificate(residual(), (SAME, CLASSES), "cross_entropy")
    assert not result.applies("4.7")
    assert result.applies("4.5")
    assert result.kernel_bound < 1e-12
    told = [row["why"] for row in result.hypotheses if not row["holds"]]
    assert any("smallest singular value of the data" in why for why in told)
    with pytest.raises(TheodoliteError, match=r"unknown theorem '6'"):
        result.applies("6")


def test_one_layer_is_where_the_corrected_theorem_holds():
    alone = certificate(residual(0), (inputs(4, 5), CLASSES), "cross_entropy")
    assert all(row["holds"] for row in alone.hypotheses)
    deep = certificate(residual(1), (inputs(4, 5), CLASSES), "cross_entropy")
    assert deep.applies("5.1")
    assert not all(row["holds"] for row in deep.hypotheses)


def test_weights_before_a_batch_norm_may_be_unbounded():
    """The data does not move, so that only what follows the norm must be bounded."""
    plan = SystemBlueprint(
        inputs=5,
        layers=(
            AffineLayer(into=5, out=3),
            BatchNormLayer(features=3, eps=0.5),
            NonlinearLayer(activation="tanh"),
            AffineLayer(into=3, out=3, parameterisation="weight_norm"),
        ),
    )
    network, x = build(plan, seed=0), inputs(4, 5)
    result = certificate(network, (x, CLASSES), "cross_entropy")
    assert math.isfinite(result.smoothness)
    assert not result.reasons
    for scale in (0.01, 0.3, 1.0, 3.0):
        with torch.no_grad():
            network.layers[0].weight.mul_(scale)
        matrix = hessian(
            network, (x, CLASSES), loss=nn.CrossEntropyLoss(), norm_mode="batch"
        ).matrix
        assert np.linalg.norm(matrix, 2) <= result.smoothness


def test_bounds_alone_need_no_kernel():
    network, x = residual(1), inputs(4, 5)
    whole = certificate(network, (x, CLASSES), "cross_entropy")
    alone = certificate(network, (x, CLASSES), "cross_entropy", measure_kernel=False)
    assert math.isnan(alone.kernel_smallest)
    assert alone.ratio == whole.ratio
    assert alone.smoothness == whole.smoothness
    assert (alone.terms == whole.terms).all()
    assert alone.cost.passes < whole.cost.passes


def test_parameters_without_a_gradient_count_too():
    network, x = residual(1), inputs(4, 5)
    result = certificate(network, (x, CLASSES), "cross_entropy")
    network.requires_grad_(False)
    again = certificate(network, (x, CLASSES), "cross_entropy")
    assert again.kernel_smallest == result.kernel_smallest
    assert not any(p.requires_grad for p in network.parameters())


def test_a_bound_past_the_largest_float_says_so():
    layers = [m for _ in range(90) for m in (nn.Linear(4, 4), nn.Tanh())]
    deep = nn.Sequential(*layers).double()
    with torch.no_grad():
        for parameter in deep.parameters():
            parameter.mul_(1e4)
    result = certificate(deep, (inputs(4, 4), inputs(4, 4)), "square", radius=1.0)
    assert result.reasons == (
        "the product of the layers' bounds passes the largest float",
    )
