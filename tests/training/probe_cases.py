"""Small networks, data and probes for the tests of training."""

import torch
from torch import nn

from theodolite.training.loop.loop import train
from theodolite.training.optimizers.descent import Descent
from theodolite.training.probes.probe import Probe
from theodolite.training.probes.schedules import AtLosses, AtSteps, Every


def data(samples=12, inputs=3, outputs=2, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(samples, inputs, generator=generator, dtype=dtype)
    y = torch.randn(samples, outputs, generator=generator, dtype=dtype)
    return x, y


def network(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).to(dtype)


def plain_run(probes, *, steps=6):
    """Return a run of the plain loop, which other loops are compared with."""
    descent = Descent(lr=0.1, momentum=0.9)
    return train(network(), data(), optimizer=descent, steps=steps, probes=probes)


def moody(seed=0, dtype=torch.float64):
    """A network that any stray forward pass would change: batch norm and dropout."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(3, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 2)
    ).to(dtype)


def weight_norm(at):
    return torch.sqrt(sum(p.square().sum() for p in at.model.parameters()))


def gradient_norm(at):
    x, y = at.data
    value = (at.model(x) - y).square().sum() / (2 * len(x))
    grads = torch.autograd.grad(value, list(at.model.parameters()))
    return {
        "all": torch.sqrt(sum(g.square().sum() for g in grads)),
        "number": len(grads),
    }


def vandal(at):
    """Disturb all that a probe can reach."""
    at.model.eval()
    for parameter in at.model.parameters():
        parameter.data.mul_(3)
        parameter.grad = torch.ones_like(parameter)
    at.model(torch.randn_like(at.model(at.data[0])[:, :1]).expand(-1, 3))
    torch.rand(5)
    return 1.0


def broken(at):
    raise ZeroDivisionError(f"no number at step {at.step}")


def probes(levels=(1.0, 0.7)):
    return [
        Probe("weights", weight_norm, Every(2)),
        Probe("gradient", gradient_norm, AtSteps([0, 3, 6])),
        Probe("low", weight_norm, AtLosses(levels)),
    ]


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def table(rows, namespace=""):
    """Step, quantity, level, value and loss of each row, for comparison."""
    return {
        (r["step"], r["quantity"].removeprefix(namespace), r.get("level")): (
            r["value"],
            r["loss"],
        )
        for r in rows
    }


def half_square(model, x, y):
    return 0.5 * ((model(x) - y) ** 2).sum(1).mean()


def by_hand(model, batches, rates, momentum=0.0, decay=0.0):
    """Return the losses of SGD written out, one batch a rate and one more to look."""
    parameters = list(model.parameters())
    velocity = [torch.zeros_like(p) for p in parameters]
    losses = []
    for (x, y), rate in zip(batches, [*rates, None], strict=True):
        value = half_square(model, x, y)
        losses.append(value.item())
        if rate is None:
            break
        grads = torch.autograd.grad(value, parameters)
        with torch.no_grad():
            for p, v, g in zip(parameters, velocity, grads, strict=True):
                v.mul_(momentum).add_(g + decay * p)
                p.sub_(rate * v)
    return losses
