"""Sound networks get notes at most, and praise only where all parameters learn."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from theodolite.survey import Survey, find, survey

WIDTH = 16


class Sum(nn.Module):
    """A branch added to its input, by a fixed factor, with a norm behind."""

    def __init__(self, branch, *, factor=1.0, norm=None):
        super().__init__()
        self.branch, self.factor, self.norm = branch, factor, norm

    def forward(self, x):
        x = x + self.factor * self.branch(x)
        return x if self.norm is None else self.norm(x)


class Excitation(nn.Module):
    """A squeeze-and-excitation gate of which most inner units are dead."""

    def __init__(self, channels, inner):
        super().__init__()
        self.squeeze = nn.Conv2d(channels, inner, 1)
        self.excite = nn.Conv2d(inner, channels, 1)
        nn.init.constant_(self.squeeze.bias[2:], -9.0)

    def forward(self, x):
        inner = self.squeeze(x.mean((2, 3), keepdim=True)).relu()
        return x * self.excite(inner).sigmoid()


class Gated(nn.Module):
    """A product of two layers, one of them rectified; most of its units are dead."""

    def __init__(self, width):
        super().__init__()
        self.value, self.gate = nn.Linear(width, 32), nn.Linear(width, 32)
        self.out = nn.Linear(32, width)
        nn.init.constant_(self.gate.bias[8:], -9.0)

    def forward(self, x):
        return self.out(self.value(x) * self.gate(x).relu())


def layers(*widths):
    modules = [
        part for pair in pairwise(widths) for part in (nn.Linear(*pair), nn.ReLU())
    ]
    return nn.Sequential(*modules[:-1])


def tower(*blocks):
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *blocks, nn.Linear(WIDTH, 4))


def of_few_units(*, alike):
    """A bottleneck of eight units that are copies of one, or of which six are dead."""
    model = layers(WIDTH, 64, 8, 64, 4)
    if alike:
        weight = model[2].weight.abs()[:1].expand(8, -1)
        model[2].weight, model[2].bias = nn.Parameter(weight.clone()), None
    else:
        nn.init.constant_(model[2].bias[2:], -9.0)
    return model


def excited():
    stem = [nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), Excitation(32, 16)]
    return nn.Sequential(*stem, nn.AdaptiveAvgPool2d(1), nn.Flatten(), layers(32, 4))


def deep():
    model = layers(WIDTH, *[32] * 12, 4)
    for layer in model[::2]:
        nn.init.kaiming_normal_(layer.weight)
        nn.init.zeros_(layer.bias)
    return model


SOUND = {
    "squeeze-and-excitation": ("dead-units", excited),
    "gated": ("dead-units", lambda: tower(Sum(Gated(WIDTH)), Sum(Gated(WIDTH)))),
    "bottleneck": ("dead-units", lambda: of_few_units(alike=False)),
}


def surveyed(model, *measures, shape=(WIDTH,), target=None, **settings) -> Survey:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(64, *shape, generator=generator)
    loss = nn.CrossEntropyLoss() if target is None else nn.MSELoss()
    batch = (x, torch.arange(64) % 4 if target is None else x)
    given = {"measures": measures, "progress": False, **settings}
    return survey(model, batch, loss=loss, **given)


@pytest.mark.parametrize("name", SOUND)
def test_what_sound_networks_have_too_is_a_note(name):
    rule, make = SOUND[name]
    torch.manual_seed(0)
    model = make()
    result = surveyed(
        model,
        *("map", "signal", "units"),
        shape=(3, 6, 6) if name == "squeeze-and-excitation" else (WIDTH,),
        target="inputs" if name == "autoencoder" else None,
        optimizer=torch.optim.Adam(model.parameters()),
    )
    severities = {finding.rule: finding.severity for finding in result.findings}
    assert severities[rule] == "note"
    assert not {"sick", "warning"} & set(severities.values())
    assert not [one for one in result.advice if one.kind == "initialisation"]
    assert "✗" not in str(result)


def test_dead_units_of_the_signal_itself_are_still_sick():
    model = layers(WIDTH, 32, 4)
    nn.init.constant_(model[0].bias[4:], -9.0)
    (finding,) = surveyed(model, "map", "units").findings
    assert (finding.rule, finding.severity) == ("dead-units", "sick")
    assert finding.where == ("0",)


@pytest.mark.parametrize("zero", [False, True])
def test_praise_wants_a_gradient_of_every_parameter(zero):
    """A norm that starts at zero keeps the gradient from the branch before it."""
    torch.manual_seed(0)
    blocks = [Sum(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)))]
    model = tower(*blocks, Sum(layers(WIDTH, WIDTH)))
    if zero:
        nn.init.zeros_(blocks[0].branch[1].weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    result = surveyed(model, "map", "signal", optimizer=optimizer)
    rules = {finding.rule: finding for finding in result.findings}
    assert ("signal-steady" in rules) is not zero
    if zero:
        assert not any(one.severity == "good" for one in find(result))


def test_a_parameter_that_nothing_reads_keeps_praise_away():
    model = layers(WIDTH, 32, 4)
    model.register_parameter("spare", nn.Parameter(torch.ones(3)))
    result = surveyed(model, "signal")
    assert not [one for one in result.findings if one.severity == "good"]
