"""Theorem 5.1: verdicts, counterfactuals, and the study's own networks."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from tests.studies.counterfactuals import (
    const,
    first,
    refused,
    rows_of,
    scale,
    shift,
    study_tests,
)
from theodolite import networks
from theodolite.core import normalised_residual
from theodolite_papers.macdonald2023skip.global_convergence.config import (
    PRESETS,
    inputs,
)
from theodolite_papers.macdonald2023skip.global_convergence.predict import (
    stalled,
    stalled_rate,
)
from theodolite_papers.macdonald2023skip.shared.normalised_stack import (
    NormalisedStack,
    cross_entropy,
    descend,
    follow,
    gated,
    least_kernel,
    logistic,
    settle,
    square,
)

STUDY = "global_convergence"
ERRATA = (
    "theorem-5-1",
    "first-case-needs-pl",
    "gain-upside-down",
    "one-factor-too-many",
    "growth-lacks-the-step",
    "regularity-goes-with-the-square",
    "weights-cannot-be-turned",
    "square-cost-is-not-uniform",
)
ONE, EIGHT = {"multiple": 1.0}, {"multiple": 8.0}
ENDS = ("stalled_excess", "limit_above")
RIVAL, THEOREM = {"network": "rival"}, {"network": "theorem"}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("theorem-5-1", "m", ENDS, ONE, const(0.0)),
    ("theorem-5-1", "m", "branch_motion", {}, first(const(0.1))),
    ("theorem-5-1", "m", "over_law", EIGHT, first(const(2.0))),
    ("theorem-5-1", "m", "fall_over_kernel", {}, first(const(0.9))),
    ("theorem-5-1", "p", "guarantee", {}, first(const(1e-6))),
    ("every-step-descends", "m", "rise", ONE, first(const(1e-9))),
    ("kernel-never-singular", "m", "kernel", THEOREM, first(const(0.0))),
    ("kernel-never-singular", "m", "kernel", RIVAL, first(const(1e-3))),
    ("kernel-never-singular", "p", "kernel_floor", {}, scale(1e9)),
    ("first-case-needs-pl", "m", "fall_over_kernel", {}, first(const(0.9))),
    ("first-case-needs-pl", "m", "path_over_room", {}, first(const(2.0))),
    ("first-case-needs-pl", "m", "kernel_over_floor", {}, first(const(0.5))),
    ("first-case-needs-pl", "m", "fitted", {"multiple": 64.0}, const(0.5)),
    ("first-case-needs-pl", "m", "quartic", {}, lambda r: _fast(r)),
    ("first-case-needs-pl", "m", "quartic_weight", {}, first(const(50.0))),
    ("one-layer-reaches", "m", "excess", {"start": "turned"}, const(2.0)),
    ("one-layer-rate", "m", "over_law", {"layers": 1, "start": "unit"}, const(1.3)),
    ("one-layer-rate", "p", "flow_excess", {}, first(scale(1.5))),
    ("open-sets-stall", "m", "stalled_excess", {"gate": "bump"}, const(0.0)),
    ("open-sets-stall", "m", "branch_motion", {}, first(const(0.1))),
    ("open-sets-stall", "m", "held", {}, const(0.0)),
    ("zero-branches-stay-one-layer", "m", "limit", {"start": "still"}, shift(-0.01)),
    ("zero-branches-stay-one-layer", "m", "below_one_layer", {}, const(0.0)),
    ("local-infima-at-infinity", "m", "lost", {}, const(0.0)),
    ("local-infima-at-infinity", "m", "curvature_of_lost", {}, const(-0.1)),
    ("most-normal-starts-reach", "m", "reached", {}, scale(0.1)),
    ("eight-times-the-step", "m", "rise", EIGHT, first(const(1e-9))),
    ("cross-entropy-stays-positive", "p", "loss_floor", {}, const(0.0)),
    ("cross-entropy-stays-positive", "m", "best", {}, const(0.0)),
    ("gain-upside-down", "m", "factor", {}, const(0.1)),
    ("gain-upside-down", "m", "factor", {}, const(0.99)),
    ("one-factor-too-many", "m", "left", {}, scale(0.1)),
    ("growth-lacks-the-step", "m", "growth", {}, scale(1.1)),
    ("growth-lacks-the-step", "p", "printed_growth", {}, lambda r: _growth(r)),
    ("regularity-goes-with-the-square", "m", "kernel", EIGHT,
     lambda r: r["step"] ** -0.5 * (1 + 0.01 * r["trial"])),
    ("regularity-goes-with-the-square", "m", "kernel", EIGHT,
     lambda r: r["step"] ** -1.0 * (1 + 0.01 * r["trial"])),
    ("regularity-goes-with-the-square", "p", "product", {}, const(0.0)),
    ("weights-cannot-be-turned", "m", "turning_gap", {}, const(0.0)),
    ("weights-cannot-be-turned", "m", "weight_over_growth", {}, first(const(1.1))),
    ("square-cost-is-not-uniform", "m", "stalled_excess", {}, const(0.0)),
    ("square-cost-is-not-uniform", "m", "over_law", EIGHT, const(2.0)),
]  # fmt: skip


def _fast(row):
    return np.exp(-0.5 * row["step"]) * (1 + 0.01 * row["trial"]) + 1e-17


def _growth(row):
    return (1 + 4 * row["rate"] * row["step"]) ** 0.25


# Four datasets fix no mean over them; those of QUICK do.
OPEN = ("local-infima-at-infinity", "most-normal-starts-reach")


TestStudy = study_tests(
    STUDY,
    COUNTERFACTUALS,
    {
        **dict.fromkeys(OPEN, "UNDECIDED"),
        **dict.fromkeys(ERRATA, ("FAILS", "HOLDS")),
    },
    copies=dict.fromkeys(OPEN, 3),
)
test_what_cannot_be_run_is_refused = refused(
    STUDY,
    ({"samples": 5}, "linearly independent data"),
    ({"epsilon": 0.0}, "positive"),
    ({"multiples": (2.0, 4.0)}, "rise from 1.0"),
    ({"long": 5}, "at least 100"),
)


def test_limits_are_those_of_the_reference(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    of = {"gate": "tanh", "cost": "logistic", "layers": 2}
    found = [both.predicted.value(quantity=q, **of) for q in ("stall", "infimum")]
    assert_allclose(found, [0.3132616875, 0.1765353804], atol=1e-10)
    ramp = both.predicted.value(
        quantity="infimum", gate="ramp", cost="logistic", layers=2
    )
    assert ramp == pytest.approx(0.227541, abs=1e-6)


def test_a_step_leaves_what_the_reference_says(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    assert both.measured.value(quantity="factor", case=0) == pytest.approx(0.64)
    assert both.predicted.value(quantity="factor", case=0) == pytest.approx(0.91)
    printed = both.predicted.value(quantity="printed_factor", case=0)
    assert printed == pytest.approx(0.3025)


@pytest.mark.parametrize("activation", ["tanh", "ramp"])
def test_networks_are_those_of_the_room(activation):
    plan = normalised_residual(inputs=4, widths=(3, 3, 3), activation=activation)
    network = networks.build(plan, seed=0)
    weights = [w.detach()[None] for w in network.parameters()]
    x = torch.randn(
        5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    stack = NormalisedStack(inputs=x.T[None], gate=activation)
    assert_allclose(
        stack.outputs(weights)[0].T.numpy(), network(x).detach().numpy(), rtol=1e-13
    )


def test_gates_have_slopes_of_at_most_one_and_vanish_together():
    z = torch.linspace(-3, 3, 4001, dtype=torch.float64, requires_grad=True)
    for gate in ("tanh", "ramp", "bump"):
        values = gated(gate, z)
        (slope,) = torch.autograd.grad(values.sum(), z)
        assert 0 <= slope.min()
        assert slope.max() <= 1
        if gate != "tanh":
            assert not values[z <= 0].any()
            assert not slope[z <= 0].any()
    bump = gated("bump", torch.tensor([0.5, 1e-9], dtype=torch.float64))
    assert_allclose(bump.numpy(), [np.exp(-2), 0.0], rtol=1e-15)


def test_kernels_are_those_of_a_dense_jacobian():
    config = PRESETS["smoke"]
    x = torch.tensor(inputs(config, 0).T)[None]
    stack = NormalisedStack(inputs=x)
    rng = torch.Generator().manual_seed(0)
    shapes = ((3, 4), (3, 3), (3, 3))
    weights = [torch.randn(1, *s, dtype=torch.float64, generator=rng) for s in shapes]
    jacobians = torch.autograd.functional.jacobian(
        lambda *w: stack.outputs(w).flatten(), tuple(weights)
    )
    whole = torch.cat([j.flatten(1) for j in jacobians], dim=1)
    wanted = torch.linalg.eigvalsh(whole @ whole.T)[0]
    assert_allclose(least_kernel(stack, weights).numpy(), [wanted], rtol=1e-9)


def test_descent_takes_the_steps_of_the_written_gradient():
    start = torch.tensor([[[0.3]], [[-0.2]]], dtype=torch.float64)
    rates = torch.tensor([0.5, 0.1], dtype=torch.float64)
    stack = NormalisedStack(inputs=torch.ones(1, 1, 1, dtype=torch.float64))
    done = descend(lambda w: logistic(stack.outputs(w)), [start], rates, (0, 7))
    for place, rate in enumerate((0.5, 0.1)):
        w = float(start[place])
        for _ in range(7):
            out = w / np.sqrt(1 + w * w)
            w += rate / (1 + np.exp(out)) / (1 + w * w) ** 1.5
        assert float(done.weights[0][place]) == pytest.approx(w, rel=1e-14)
    assert float(done.rise.max()) < 0
    assert (done.losses[0] > done.losses[1]).all()


def test_growing_steps_never_raise_a_loss_and_ends_settle_at_the_cube():
    x = torch.tensor([[[1.0], [0.5]]], dtype=torch.float64)
    stack = NormalisedStack(inputs=x)
    start = [torch.full((1, 2, 2), 0.1, dtype=torch.float64)]
    classes = torch.tensor([0])

    def cost(outputs):
        return cross_entropy(outputs, classes)

    rates = torch.tensor([0.1], dtype=torch.float64)
    before = cost(stack.outputs(start))
    done = follow(lambda w: cost(stack.outputs(w)), start, rates, 100)
    assert float(done.losses) < float(before)
    assert float(done.time) > 100 * 0.1  # steps have grown
    ended = settle(stack, cost, done.weights, 300)
    # Entries of the right class end at 1, of the other at -1: a gap of 2 * 1.5.
    assert_allclose(ended.losses.numpy(), [np.log1p(np.exp(-3))], rtol=1e-9)
    assert float(ended.left) < 1e-12


@pytest.mark.parametrize("gate", ["tanh", "ramp", "bump"])
@pytest.mark.parametrize("cost", ["logistic", "square"])
def test_no_hessian_of_a_network_of_one_unit_exceeds_its_certified_bound(gate, cost):
    network = stalled(PRESETS["smoke"], gate, cost, 2)
    beta = 1 / stalled_rate(PRESETS["smoke"], network)
    stack = NormalisedStack(inputs=torch.ones(1, 1, 1, dtype=torch.float64), gate=gate)

    def loss(flat):
        out = stack.outputs([w.view(1, 1, 1) for w in flat])
        if cost == "logistic":
            return logistic(out).sum()
        return square(out, torch.tensor(network.target)).sum()

    rng = torch.Generator().manual_seed(0)
    drawn = 1.5 * torch.randn(60, 3, dtype=torch.float64, generator=rng)
    norms = [
        torch.linalg.matrix_norm(torch.autograd.functional.hessian(loss, w), 2)
        for w in drawn
    ]
    assert 0.01 * beta < float(max(norms)) <= beta
