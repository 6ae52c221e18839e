"""What may be handed to SphereSGD, and what is refused before anything moves."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.sphere_cases import chain, descend, weights_of
from theodolite.core import ConfigError, MeasurementError, UnknownNameError
from theodolite.training import (
    ConstantNorm,
    LogisticNorm,
    SphereSGD,
    sphere_groups,
)


def test_schedules():
    grow = {"start": 0.5, "end": 4.0, "steps": 100}
    for settings in (grow, {"start": 4.0, "end": 0.5, "steps": 100}):
        path = [LogisticNorm(**settings)(t) for t in range(200)]
        assert path[0] == pytest.approx(settings["start"], rel=1e-12)
        assert path[100] == pytest.approx(settings["end"], rel=0.011)
        gaps = np.diff(path) * np.sign(settings["end"] - settings["start"])
        assert (gaps >= 0).all()
    assert ConstantNorm(rho=3)(17) == 3.0
    # Logistic growth: the relative rate falls in a straight line with the norm.
    curve = LogisticNorm(**grow)
    rates = [
        ((curve(t + 1e-3) - curve(t - 1e-3)) / 2e-3 / curve(t)) / (1 - curve(t) / 4)
        for t in (1.0, 20.0, 50.0)
    ]
    assert rates == pytest.approx([rates[0]] * 3, rel=1e-5)


def test_groups_of_a_model_with_every_kind_of_layer():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Conv2d(4, 3, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(27, 2),
    ).double()
    kept = copy.deepcopy(model.state_dict())
    x = torch.randn(8, 1, 6, 6, dtype=torch.float64)
    groups = sphere_groups(model, rho=5.0, inputs=x, weight_decay=0.1)
    names = [[name for name, _ in group["params"]] for group in groups]
    assert names == [
        ["4.weight", "7.weight"],
        ["0.weight"],
        ["0.bias", "1.weight", "1.bias", "4.bias", "7.bias"],
    ]
    for key, value in model.state_dict().items():
        assert torch.equal(value, kept[key])
    optim = SphereSGD(groups, lr=0.1, momentum=0.9)
    first = float(model[0].weight.detach().norm())
    for _ in range(3):
        optim.zero_grad()
        model(x).square().sum().backward()
        optim.step()
    norms = optim.norms()
    assert norms[:2] == (pytest.approx(5.0), pytest.approx(first))
    assert norms[2] is None
    named = sphere_groups(model, rho=5.0, invariant=["0.weight"])
    assert [[n for n, _ in g["params"]] for g in named] == names


def failing(**settings):
    return lambda: SphereSGD(chain().parameters(), **{"lr": 0.1, **settings})


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (failing(rho=-1.0), ConfigError, "rho is -1.0: pass a positive number"),
        (failing(rho=0.0), ConfigError, "rho is 0.0"),
        (failing(rho="much"), ConfigError, "rho is 'much'"),
        (failing(rho=True), ConfigError, "rho is True"),
        (failing(rho=lambda t: math.nan), ConfigError, "rho at step 0 is nan"),
        (failing(lr=-0.1), ConfigError, "learning rate lr is -0.1"),
        (failing(lr=math.nan), ConfigError, "learning rate lr is nan"),
        (failing(momentum=1.0), ConfigError, "momentum is 1.0"),
        (failing(nesterov=True), ConfigError, "nesterov"),
        (failing(weight_decay=0.1), ConfigError, "weight_decay is 0.1 for directions"),
        (
            lambda: SphereSGD(
                [{"params": chain().parameters(), "weight_decay": 0.1}], lr=0.1
            ),
            ConfigError,
            "weight_decay is 0.1 for directions",
        ),
        (
            lambda: SphereSGD([("b", nn.Parameter(torch.zeros(3)))], lr=0.1),
            MeasurementError,
            r"parameter 'b', of shape \(3,\), is zero and has no direction",
        ),
        (
            lambda: SphereSGD([nn.Parameter(torch.tensor([math.nan, 1.0]))], lr=0.1),
            MeasurementError,
            "parameter number 0 of its group, .* is not finite",
        ),
        (lambda: LogisticNorm(start=0, end=1, steps=3), ConfigError, "start is 0"),
        (lambda: LogisticNorm(start=1, end=1, steps=0), ConfigError, "steps is 0"),
        (
            lambda: sphere_groups(nn.BatchNorm1d(3), rho=1.0),
            MeasurementError,
            "no linear or convolutional layer",
        ),
        (
            lambda: sphere_groups(chain(), rho=1.0, invariant=["0.wait"]),
            UnknownNameError,
            "did you mean '0.weight'",
        ),
        (
            lambda: sphere_groups(chain(), rho=1.0, invariant="0.weight"),
            ConfigError,
            "invariant is",
        ),
        (
            lambda: sphere_groups(None, rho=1.0),
            MeasurementError,
            "model is None: pass Module",
        ),
        (
            lambda: sphere_groups(nn.Linear(3, 2), rho=1.0, inputs=torch.ones(0, 3)),
            MeasurementError,
            "outputs are empty or zero",
        ),
        (
            lambda: SphereSGD(chain().parameters(), lr=0.1).load_state_dict(None),
            ConfigError,
            "load one that SphereSGD saved",
        ),
        (
            lambda: sphere_groups(chain(), rho=1.0, inputs=torch.ones(2, 7)),
            MeasurementError,
            "does not run on the inputs",
        ),
        (
            lambda: sphere_groups(
                nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)),
                rho=1.0,
                inputs=torch.randn(9, 3),
            ),
            MeasurementError,
            "no direction has a scale",
        ),
    ],
)
def test_bad_settings_are_one_sentence(make, error, words):
    with pytest.raises(error, match=words) as told:
        make()
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_bad_gradient_moves_nothing(bad):
    model = chain()
    optim = SphereSGD(model.named_parameters(), lr=0.1, momentum=0.9, rho=2.0)
    descend(model, optim, 2)
    before, steps = weights_of(model), optim.param_groups[0]["steps"]
    model[4].weight.grad[0, 0] = bad
    with pytest.raises(MeasurementError, match=r"gradient of parameter '4.weight'"):
        optim.step()
    assert optim.param_groups[0]["steps"] == steps
    for a, b in zip(before, weights_of(model), strict=True):
        assert torch.equal(a, b)


def test_a_schedule_that_goes_wrong_moves_nothing():
    model = chain()
    optim = SphereSGD(model.parameters(), lr=0.1, rho=lambda t: 2.0 - t)
    descend(model, optim, 1)
    before = weights_of(model)
    with pytest.raises(ConfigError, match=r"rho at step 2 is 0\.0"):
        descend(model, optim, 1)
    for a, b in zip(before, weights_of(model), strict=True):
        assert torch.equal(a, b)
    with torch.no_grad():
        model[0].weight.zero_()
    optim.param_groups[0]["rho"] = 1.0
    with pytest.raises(MeasurementError, match="is zero and has no direction"):
        descend(model, optim, 1)


def test_a_refused_group_is_not_added():
    model = chain()
    optim = SphereSGD(model.parameters(), lr=0.1)
    with pytest.raises(MeasurementError):
        optim.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
    assert len(optim.param_groups) == 1
