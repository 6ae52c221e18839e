"""Pairs whose units or heads are at fault."""

import torch
from torch import Tensor, nn

from tests.known_failures.cases import BatchList, Case, Pair
from tests.known_failures.layers import seeded
from tests.known_failures.samples import clouds

WIDTH = 24


def _three_layers(
    activation: type[nn.Module] = nn.ReLU,
) -> tuple[nn.Sequential, list[nn.Linear]]:
    """Return a network and its three layers."""
    layers = [nn.Linear(16, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4)]
    first, second, head = layers
    model = nn.Sequential(first, activation(), second, activation(), head)
    return model, layers


def _with_bias(bias: float) -> Case:
    with seeded(21):
        model, layers = _three_layers()
        nn.init.constant_(layers[0].bias, bias)
    return Case(model=model, batches=clouds())


def _of_tanh(gain: float) -> Case:
    with seeded(22):
        model, layers = _three_layers(nn.Tanh)
        with torch.no_grad():
            layers[0].weight.mul_(gain)
            layers[1].weight.mul_(gain)
    return Case(model=model, batches=clouds())


def _constant(constant: bool) -> Case:
    with seeded(23):
        model, layers = _three_layers()
        if constant:
            nn.init.constant_(layers[1].weight, 0.05)
            nn.init.zeros_(layers[1].bias)
    return Case(model=model, batches=clouds())


def _diverged(diverged: bool) -> Case:
    with seeded(27):
        model, layers = _three_layers()
        if diverged:
            nn.init.constant_(layers[1].weight, torch.inf)
    return Case(model=model, batches=clouds())


class _Detour(nn.Module):
    """Three layers, of which the forward pass may leave out the second."""

    def __init__(self, called: bool) -> None:
        super().__init__()
        self.called = called
        _, (self.first, self.second, self.head) = _three_layers()

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of classes."""
        x = self.first(x).relu()
        return self.head(self.second(x).relu() if self.called else x)


def _calling_all(called: bool) -> Case:
    with seeded(28):
        return Case(model=_Detour(called), batches=clouds())


def _with_softmax(softmax: bool) -> Case:
    with seeded(25):
        model, _ = _three_layers()
        if softmax:
            model.append(nn.Softmax(dim=1))
    return Case(model=model, batches=clouds())


def _of_bytes(divided: bool) -> Case:
    batches: BatchList = [
        ((40 * x + 128).clamp(0, 255), labels) for x, labels in clouds()
    ]
    if divided:
        batches = [((x - 128) / 40, labels) for x, labels in batches]
    with seeded(26):
        return Case(model=_three_layers()[0], batches=batches)


PAIRS = (
    Pair(
        name="diverged-weights",
        illness="weights that a diverged training left infinite",
        cure="weights as torch draws them",
        sick=lambda: _diverged(True),
        healthy=lambda: _diverged(False),
        expected=("not-finite",),
    ),
    Pair(
        name="dead-units",
        illness="biases so low that most rectifiers never open",
        cure="biases of zero",
        sick=lambda: _with_bias(-4.0),
        healthy=lambda: _with_bias(0.0),
        expected=("dead-units",),
        also=("biases-shut-units",),
    ),
    Pair(
        name="saturated-units",
        illness="weights so large that every tanh is at one of its ends",
        cure="torch's own weights",
        sick=lambda: _of_tanh(20.0),
        healthy=lambda: _of_tanh(1.0),
        expected=("saturated-units",),
    ),
    Pair(
        name="equal-weights",
        illness="a layer whose weights are one constant, so that its units are one",
        cure="torch's own weights",
        sick=lambda: _constant(True),
        healthy=lambda: _constant(False),
        expected=("weights-all-equal",),
    ),
    Pair(
        name="layer-never-called",
        illness="a layer that the forward pass forgets",
        cure="the layer is called",
        sick=lambda: _calling_all(False),
        healthy=lambda: _calling_all(True),
        expected=("no-gradient",),
    ),
    Pair(
        name="softmax-before-cross-entropy",
        illness="a softmax at the end, and a loss that takes another",
        cure="no softmax",
        sick=lambda: _with_softmax(True),
        healthy=lambda: _with_softmax(False),
        expected=("probabilities-as-logits",),
    ),
    Pair(
        name="inputs-as-bytes",
        illness="inputs from 0 to 255, as they come from a file",
        cure="inputs of mean 0 and variance 1",
        sick=lambda: _of_bytes(False),
        healthy=lambda: _of_bytes(True),
        expected=("inputs-unscaled",),
    ),
)
