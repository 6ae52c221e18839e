"""The curvature at which descent stops being stable, by theory and by descending."""

import pytest
import torch
from torch import nn

from theodolite.core import ConfigError
from theodolite.instruments import HalfSquareLoss
from theodolite.theory import stability_edge
from theodolite.training import Descent, train


def grows(curvature, rate, momentum):
    """Whether the loss of a line of this curvature grows in descent."""
    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    nn.init.ones_(model.weight)
    x = torch.full((1, 1), curvature**0.5, dtype=torch.float64)
    run = train(
        model,
        (x, torch.zeros(1, 1, dtype=torch.float64)),
        optimizer=Descent(lr=rate, momentum=momentum),
        loss=HalfSquareLoss(),
        steps=300,
    )
    return bool(run.diverged or run.loss[-1] > run.loss[0])


@pytest.mark.parametrize(("rate", "momentum"), [(0.1, 0.0), (0.3, 0.5), (0.1, 0.9)])
def test_descent_grows_beyond_the_edge_and_not_below(rate, momentum):
    edge = stability_edge(rate, momentum)
    assert grows(1.02 * edge, rate, momentum)
    assert not grows(0.98 * edge, rate, momentum)


def test_the_edge_of_plain_descent_is_not_that_of_momentum():
    """The rival leaves momentum out: at its edge descent with momentum is calm."""
    assert not grows(1.5 * stability_edge(0.1), 0.1, 0.9)


@pytest.mark.parametrize(
    ("rate", "momentum", "text"),
    [(0.0, 0.0, "rate is 0"), (0.1, 1.0, "momentum is 1"), (0.1, -0.1, "momentum is")],
)
def test_bad_rates_are_refused(rate, momentum, text):
    with pytest.raises(ConfigError, match=text):
        stability_edge(rate, momentum)
