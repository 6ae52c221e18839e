"""Random residual networks, built together with the truth about them."""

import random
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from theodolite.anatomy import Recorder, anatomy, unfused

WIDTH = 4
X = torch.linspace(-2, 2, 3 * WIDTH).sin().reshape(3, WIDTH)
KINDS = ("gate", "concatenation")
ORDERS = ("skip first", "skip last", "in place", "torch.add")


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(WIDTH, 2 * WIDTH)

    def forward(self, x):
        a, b = self.lift(x).chunk(2, -1)
        return a * b.sigmoid()


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.more, self.back = nn.Linear(WIDTH, 2), nn.Linear(WIDTH + 2, WIDTH)

    def forward(self, x):
        return self.back(torch.cat([x, self.more(x).relu()], -1))


class Residual(nn.Module):
    """A skip and branches, added in one of several manners."""

    def __init__(self, kind, branches, order):
        super().__init__()
        self.kind, self.order = kind, order
        self.branches = nn.ModuleList(branches)
        self.project = nn.Linear(WIDTH, WIDTH) if kind == "projection" else None

    def forward(self, x):
        made = [branch(x) for branch in self.branches]
        skip = self.project(x) if self.project is not None else x
        skip = 0.5 * skip if self.kind == "scale" else skip
        if self.order == "in place":
            total = made[0]
            total += skip
            for other in made[1:]:
                total += other
            return total
        parts = [*made, skip] if self.order == "skip last" else [skip, *made]
        total = parts[0]
        for part in parts[1:]:
            total = (
                torch.add(total, part) if self.order == "torch.add" else total + part
            )
        return total


@dataclass(frozen=True)
class Known:
    """One addition as it was built: names of parameters, and in whose branch it is."""

    kind: str
    skip: frozenset
    branches: frozenset
    inside: str | None


def random_layer(draw):
    return draw.choice(
        [
            lambda: nn.Linear(WIDTH, WIDTH),
            lambda: nn.ReLU(inplace=draw.random() < 0.5),
            nn.Tanh,
            lambda: nn.LayerNorm(WIDTH),
            Gate,
            Dense,
        ]
    )()


def random_branch(draw, depth):
    """Start with a layer and have a nonlinearity, so that it is no skip."""
    parts = [nn.Linear(WIDTH, WIDTH), draw.choice([nn.ReLU, nn.Tanh])()]
    for _ in range(draw.randint(0, 2)):
        nested = depth and draw.random() < 0.4
        parts.append(random_residual(draw, depth - 1) if nested else random_layer(draw))
    return nn.Sequential(*parts)


def random_residual(draw, depth):
    kind = draw.choice(["identity", "identity", "projection", "scale"])
    branches = [random_branch(draw, depth) for _ in range(draw.choice([1, 1, 2, 3]))]
    return Residual(kind, branches, draw.choice(ORDERS))


def random_network(seed):
    draw = random.Random(seed)
    parts = [nn.Linear(WIDTH, WIDTH)]
    for _ in range(draw.randint(1, 4)):
        parts.append(random_residual(draw, 2) if draw.random() < 0.7 else Dense())
        if draw.random() < 0.4:
            parts.append(random_layer(draw))
    return nn.Sequential(*parts, nn.Linear(WIDTH, 2))


def known(model):
    """Return the additions by the path of the module that makes them."""
    additions = {}
    names = [name for name, _ in model.named_parameters()]
    residuals = [n for n, m in model.named_modules() if isinstance(m, Residual)]
    for path in residuals:
        module = model.get_submodule(path)
        around = [p for p in residuals if path.startswith(f"{p}.")]
        additions[path] = Known(
            kind=module.kind,
            skip=frozenset(n for n in names if n.startswith(f"{path}.project.")),
            branches=frozenset(
                frozenset(n for n in names if n.startswith(f"{path}.branches.{i}."))
                for i in range(len(module.branches))
            ),
            inside=max(around, key=len, default=None),
        )
    return additions


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_are_read_as_they_were_built(seed):
    model = random_network(seed)
    result = anatomy(model, X)
    paths = [addition.module for addition in result.additions]
    read = {
        a.module: Known(
            kind=a.skip.kind,
            skip=frozenset(a.skip.parameters),
            branches=frozenset(frozenset(b.parameters) for b in a.branches),
            inside=None if a.inside is None else paths[a.inside],
        )
        for a in result.additions
    }
    assert read == known(model)
    assert len(paths) == len(read)
    assert not result.unplaced
    counts = {kind: sum(o.kind == kind for o in result.others) for kind in KINDS}
    modules = list(model.modules())
    assert counts == {
        "gate": sum(isinstance(m, Gate) for m in modules),
        "concatenation": sum(isinstance(m, Dense) for m in modules),
    }
    assert len(result.others) == sum(counts.values())
    norms = sum(isinstance(m, nn.LayerNorm) for m in modules)
    assert len(result.norms) == norms


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_a_sum_is_its_skip_and_branches_with_their_signs(seed):
    model = random_network(seed)
    result = anatomy(model, X)
    given, made = {}, {}

    def note(index, operator, args, kwargs):
        given[index] = [a.clone() if torch.is_tensor(a) else a for a in args]
        result = operator(*args, **kwargs)
        made[index] = result.clone() if torch.is_tensor(result) else None
        return result

    with unfused(model), Recorder(model, act=note):
        model(X)
    assert len(given) == len(result.recording.calls)
    for addition in result.additions:
        spans = (addition.skip, *addition.branches)
        total = sum(span.sign * given[span.into][span.position] for span in spans)
        torch.testing.assert_close(total, made[addition.call], rtol=1e-6, atol=1e-6)
