"""SphereSGD against the flow of theory, weight norm and plain descent; resumed."""

import copy
import io
import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import nn
from torch.testing import assert_close

from tests.training.sphere_cases import chain, descend, samples, square, weights_of
from theodolite.core import ConfigError
from theodolite.theory import NormalisedFlow
from theodolite.training import (
    LogisticNorm,
    SphereSGD,
    sphere_groups,
    train,
)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("nesterov", [False, True])
def test_layers_stay_on_their_spheres(momentum, nesterov):
    model = chain()
    curve = LogisticNorm(start=0.5, end=7.0, steps=40)
    nesterov = nesterov and momentum > 0
    optim = SphereSGD(
        model.parameters(), lr=0.3, momentum=momentum, nesterov=nesterov, rho=curve
    )
    for step in range(1, 61):
        descend(model, optim, 1)
        for p in model.parameters():
            radius = curve(step) ** (1 / 3)
            assert abs(float(p.detach().norm()) / radius - 1) < 1e-12
            if momentum:
                kept = optim.state[p]["momentum"]
                along = float((kept * p.detach()).sum()) / radius
                assert abs(along) < 1e-12 * float(kept.norm())
    assert optim.norms() == pytest.approx([curve(60)], rel=1e-12)


def flow_ends(rho_at, time, start):
    """Integrate the layers of Eq 6 with the norm given, by an ODE solver."""
    x, y = samples()
    flow = NormalisedFlow(inputs=x.numpy(), labels=y.numpy(), relu=False)
    shapes = [w.shape for w in start]
    cuts = np.cumsum([w.size for w in start])[:-1]

    def layers(state):
        parts = np.split(state, cuts)
        return [
            p.reshape(s) / np.linalg.norm(p) for p, s in zip(parts, shapes, strict=True)
        ]

    def speed(t, state):
        moved = flow.speed(rho_at(t), layers(state))[1]
        return np.concatenate([m.ravel() for m in moved])

    state = np.concatenate([w.ravel() for w in start])
    solution = solve_ivp(speed, (0, time), state, rtol=1e-11, atol=1e-12)
    return layers(solution.y[:, -1])


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_small_steps_follow_the_flow_of_theory(momentum):
    def rho_at(t):
        return 0.5 + 2 * t

    model = chain(activation=nn.Identity)
    start = [w.numpy() / float(w.norm()) for w in weights_of(model)]
    truth = flow_ends(rho_at, 1.0, start)
    gaps = []
    for steps in (400, 800):
        dt = 1 / steps
        copied = copy.deepcopy(model)
        optim = SphereSGD(
            copied.parameters(),
            lr=dt * (1 - momentum),
            momentum=momentum,
            rho=lambda t, dt=dt: rho_at(t * dt),
        )
        descend(copied, optim, steps)
        ends = [w.numpy() / float(w.norm()) for w in weights_of(copied)]
        gaps.append(max(np.abs(a - b).max() for a, b in zip(ends, truth, strict=True)))
    moved = max(np.abs(a - b).max() for a, b in zip(start, truth, strict=True))
    assert moved > 0.1
    assert gaps[1] < 0.01 * moved
    assert gaps[0] / gaps[1] == pytest.approx(2.0, abs=0.1)


def test_equals_sgd_on_a_weight_normalised_network():
    """Weight norm with its length held and its vector retracted after each step."""
    lr, rho = 0.2, 1.7
    ours = chain()
    optim = SphereSGD(ours.parameters(), lr=lr, rho=rho)
    theirs = chain()
    with torch.no_grad():
        for layer in theirs[::2]:
            layer.weight.mul_(rho ** (1 / 3) / layer.weight.norm())
            nn.utils.parametrizations.weight_norm(layer, dim=None)
            layer.parametrizations.weight.original1.div_(
                layer.parametrizations.weight.original1.norm()
            )
    vectors = [layer.parametrizations.weight.original1 for layer in theirs[::2]]
    plain = torch.optim.SGD(vectors, lr=lr)
    for _ in range(20):
        descend(ours, optim, 1)
        descend(theirs, plain, 1)
        with torch.no_grad():
            for v in vectors:
                v /= v.norm()
    for a, b in zip(ours[::2], theirs[::2], strict=True):
        assert_close(a.weight.detach(), b.weight.detach(), rtol=1e-12, atol=1e-13)


def test_first_step_is_sgd_of_a_scale_free_network():
    """Where a batch norm follows, a plain step of a unit weight is ours, retracted."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(3, 5, bias=False),
        nn.BatchNorm1d(5, affine=False, eps=1e-30),
        nn.Tanh(),
        nn.Linear(5, 1, bias=False),
    ).double()
    with torch.no_grad():
        model[0].weight /= model[0].weight.norm()
    plain = copy.deepcopy(model)
    groups = sphere_groups(model, rho=2.0, inputs=samples()[0])
    assert [[n for n, _ in g["params"]] for g in groups] == [["3.weight"], ["0.weight"]]
    optim = SphereSGD(groups, lr=0.1)
    with torch.no_grad():
        plain[3].weight *= 2 / plain[3].weight.norm()
    descend(model, optim, 1)
    descend(plain, torch.optim.SGD(plain.parameters(), lr=0.1), 1)
    expected = plain[0].weight.detach() / plain[0].weight.detach().norm()
    assert_close(model[0].weight.detach(), expected, rtol=1e-12, atol=1e-13)


def test_directions_do_not_care_how_the_norm_is_divided():
    together, apart = chain(activation=nn.ReLU), chain(activation=nn.ReLU)
    one = SphereSGD(together.parameters(), lr=0.1, momentum=0.9, rho=3.0)
    norms = (0.5, 2.0, 3.0)
    groups = [
        {"params": [p], "rho": rho}
        for p, rho in zip(apart.parameters(), norms, strict=True)
    ]
    other = SphereSGD(groups, lr=0.1, momentum=0.9)
    descend(together, one, 15)
    descend(apart, other, 15)
    assert one.norms() == pytest.approx([3.0], rel=1e-12)
    for a, b in zip(weights_of(together), weights_of(apart), strict=True):
        assert_close(a / a.norm(), b / b.norm(), rtol=1e-10, atol=1e-12)


def test_groups_off_the_sphere_are_those_of_sgd():
    settings = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}
    ours, theirs = chain(1), chain(1)
    mine = SphereSGD(ours.parameters(), sphere=False, **settings)
    descend(ours, mine, 12)
    descend(theirs, torch.optim.SGD(theirs.parameters(), **settings), 12)
    for a, b in zip(weights_of(ours), weights_of(theirs), strict=True):
        assert_close(a, b, rtol=1e-12, atol=1e-13)
    assert mine.norms() == (None,)


@pytest.mark.parametrize("rho", [2.0, LogisticNorm(start=0.1, end=3, steps=20), None])
def test_state_dict_resumes_bit_for_bit(rho):
    def fresh():
        model = chain()
        return model, SphereSGD(model.named_parameters(), lr=0.1, momentum=0.9, rho=rho)

    straight, optim = fresh()
    descend(straight, optim, 14)
    model, optim = fresh()
    descend(model, optim, 6)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optim": optim.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    resumed, optim = fresh()
    resumed.load_state_dict(saved["model"])
    optim.load_state_dict(saved["optim"])
    assert optim.param_groups[0]["steps"] == 6
    descend(resumed, optim, 8)
    for a, b in zip(weights_of(straight), weights_of(resumed), strict=True):
        assert torch.equal(a, b)


def test_an_optimizer_made_behind_loaded_weights_resumes_too():
    rho = LogisticNorm(start=0.1, end=3, steps=20)
    model = chain()
    optim = SphereSGD(model.named_parameters(), lr=0.1, momentum=0.9, rho=rho)
    descend(model, optim, 6)
    resumed = copy.deepcopy(model)
    other = SphereSGD(resumed.named_parameters(), lr=0.1, rho=rho)
    other.load_state_dict(copy.deepcopy(optim.state_dict()))
    assert other.norms() == pytest.approx([rho(6)], rel=1e-12)
    descend(model, optim, 8)
    descend(resumed, other, 8)
    for a, b in zip(weights_of(model), weights_of(resumed), strict=True):
        assert_close(a, b, rtol=1e-11, atol=1e-13)


def test_a_loaded_number_replaces_the_own_one():
    model = chain()
    saved = SphereSGD(model.parameters(), lr=0.1, rho=2.0).state_dict()
    other = SphereSGD(chain(1).parameters(), lr=0.3, rho=5.0)
    other.load_state_dict(saved)
    assert other.param_groups[0]["rho"] == 2.0


def test_the_state_of_another_optimizer_is_refused():
    model = chain()
    plain = torch.optim.SGD(model.parameters(), lr=0.1).state_dict()
    with pytest.raises(ConfigError, match="that of another optimiser"):
        SphereSGD(model.parameters(), lr=0.1).load_state_dict(plain)


def test_works_with_a_closure_a_scheduler_and_copies():
    model = chain()
    optim = SphereSGD(model.parameters(), lr=0.2, momentum=0.5, rho=lambda t: 1 + t)
    rates = torch.optim.lr_scheduler.StepLR(optim, 1, gamma=0.5)
    x, y = samples()

    def closure():
        optim.zero_grad()
        loss = square(model, x, y)
        loss.backward()
        return loss

    before = square(model, x, y).item()
    assert optim.step(closure).item() == before
    rates.step()
    assert optim.param_groups[0]["lr"] == 0.1
    pair, twin = copy.deepcopy((model, optim))
    descend(model, optim, 3)
    descend(pair, twin, 3)
    assert twin.norms() == pytest.approx([5.0], rel=1e-12)
    for a, b in zip(weights_of(model), weights_of(pair), strict=True):
        assert torch.equal(a, b)


def test_the_plain_loop_takes_it():
    model = chain()
    x, y = samples()
    run = train(
        model,
        (x, y[:, None]),
        optimizer=lambda p: SphereSGD(
            p, lr=0.5, rho=lambda step: min(1 + step / 10, 4)
        ),
        steps=60,
    )
    assert run.final_loss < run.loss[0]
    norms = [float(p.detach().norm()) for p in model.parameters()]
    assert math.prod(norms) == pytest.approx(4.0, rel=1e-12)


def test_parameters_without_gradient_keep_their_direction():
    model = chain()
    optim = SphereSGD(model.parameters(), lr=0.1, rho=lambda t: 8.0**t)
    before = weights_of(model)
    model[0].weight.requires_grad_(False)
    descend(model, optim, 1)
    assert_close(model[0].weight, 2 * before[0], rtol=1e-12, atol=0)
    assert float((model[2].weight.detach() - 2 * before[1]).abs().max()) > 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_coarse_numbers_stay_as_near_as_they_can(dtype):
    model = chain(dtype=torch.float32)
    parameters = [nn.Parameter(p.detach().to(dtype)) for p in model.parameters()]
    optim = SphereSGD(parameters, lr=0.1, momentum=0.9, rho=2.0)
    for _ in range(20):
        for p in parameters:
            p.grad = torch.ones_like(p)
        optim.step()
    off = 4 * torch.finfo(dtype).eps
    for p in parameters:
        assert float(p.detach().double().norm()) == pytest.approx(2 ** (1 / 3), rel=off)
