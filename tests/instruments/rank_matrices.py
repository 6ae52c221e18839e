"""Kernels and singular values that ranks of a team measure, and one process alone."""

import torch
import torch.distributed as dist
from torch import nn

from tests.instruments.ranks import begin, data, network, sentence
from theodolite.instruments import (
    BlockJacobian,
    Team,
    share_of,
    singular_values,
    tangent_kernel,
)
from theodolite.instruments.operators.rounding_reference import rounding_reference
from theodolite.instruments.tangents import strategies as work_of_kernels

SPAN = ("1", "5")


class Shifted(nn.Module):
    """A parameter that no known layer has."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.linspace(0, 1, 4, dtype=torch.float64))

    def forward(self, x):
        return torch.tanh(x + self.shift)


class Mixing(nn.Module):
    """Lets samples act on one another where one is large."""

    def forward(self, x):
        return x + x.mean(0) if x.max() > 1.5 else x


class Normalised(nn.Module):
    """Takes batch statistics by a function, and has no module for them."""

    def forward(self, x):
        return nn.functional.batch_norm(x, None, None, training=True)


class Unique(nn.Tanh):
    """Cannot be copied on one rank, and can on the others."""

    def __init__(self, rank):
        super().__init__()
        self.rank = rank

    def __deepcopy__(self, _):
        if self.rank == 1:
            raise RuntimeError("there is but one")
        return Unique(self.rank)


def images():
    """A network of layers with rows of their own make, and images for it."""
    torch.manual_seed(2)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 2, stride=2),
        nn.GroupNorm(1, 2),
        nn.Flatten(),
        nn.Linear(8, 4),
        Shifted(),
        nn.Linear(4, 2),
    ).double()
    return model, torch.randn(7, 1, 4, 4, dtype=torch.float64)


def batch():
    """All samples at once."""
    return torch.cat([x for x, _ in data()])


def measured(team=None):
    return kernels(team) | spectra(team)


def kernels(team):
    """Measure kernels layer by layer, by rows and by products."""
    model, found = network(), {}
    held = model if team is None else nn.parallel.DistributedDataParallel(model)
    mine = share_of(data(), team)
    for mode in ("batch", "frozen", "eval"):
        found[f"kernel {mode}"] = tangent_kernel(held, mine, norm_mode=mode, team=team)
    few = share_of(data()[:3], team)
    for name, traced in ("kernel full", False), ("kernel full, traced", True):
        found[name] = tangent_kernel(
            model, few, norm_mode="full", trace_outputs=traced, team=team
        )
    model, x = images()
    mine = share_of(x, team)
    for name, given in {
        "kernel of images": {},
        "kernel in pieces": {"matrix_bytes": 30_000},
        "kernel, traced": {"trace_outputs": True},
    }.items():
        found[name] = tangent_kernel(model, mine, norm_mode="eval", team=team, **given)
    found["kernel in float32"] = tangent_kernel(
        model.float(), mine.float(), norm_mode="eval", team=team
    )
    return found


def spectra(team):
    model, x, found = network(), batch(), {}
    mine = share_of(x, team)
    given = {"block": SPAN, "team": team}
    for mode, method in ("full", "dense"), ("frozen", "blocks"), ("eval", "dense"):
        found[f"values {mode}"] = singular_values(
            model, mine, norm_mode=mode, method=method, **given
        )
    found["values in bounds"] = singular_values(
        model,
        mine,
        norm_mode="full",
        method="quadrature",
        tol=0.9,
        max_steps=8,
        **given,
    )
    jacobian = BlockJacobian(model, mine, norm_mode="full", **given)
    found["products"] = [
        jacobian @ torch.linspace(-1, 1, jacobian.shape[1], dtype=torch.float64),
        jacobian.T @ torch.linspace(-1, 1, jacobian.shape[0], dtype=torch.float64),
        torch.from_numpy(jacobian.dense()),
    ]
    return found


def disputed(team):
    """Return what is said where one rank alone finds that two ways disagree."""
    model, x = images()
    mine, kept = share_of(x, team), work_of_kernels.agrees
    work_of_kernels.agrees = lambda *given: team.rank != 1 and kept(*given)
    try:
        return sentence(
            lambda: tangent_kernel(model, mine, norm_mode="eval", team=team)
        )
    finally:
        work_of_kernels.agrees = kept


def refused(team):
    """Return what is said where only some ranks could tell what is wrong."""
    model, x = network(), batch()
    part = share_of(x, team)
    with torch.no_grad():
        model[0].bias += team.rank
    given = {"norm_mode": "eval", "team": team}
    said = {
        "kernel": sentence(lambda: tangent_kernel(model, part, **given)),
        "values": sentence(lambda: singular_values(model, part, block="3", **given)),
    }
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 1), nn.Flatten(1)).double()
    longer = torch.ones(2, 3 + (team.rank == 1), 1, dtype=torch.float64)
    said["widths"] = sentence(lambda: tangent_kernel(model, longer, **given))
    mixed = {"block": "0", "method": "blocks", **given}
    some = nn.Sequential(Mixing())
    high = torch.ones(2, 3, dtype=torch.float64) * (1 + team.rank)
    said["coupled"] = sentence(lambda: singular_values(some, high, **mixed))
    mixed = nn.Sequential(nn.Linear(3, 3), Mixing())
    nn.init.eye_(mixed[0].weight), nn.init.zeros_(mixed[0].bias)
    given = {"norm_mode": "eval", "team": team}
    unlike = high.float() * torch.tensor([[1.0], [1.2]])
    said["mixed"] = tangent_kernel(mixed, unlike, **given).method
    # A rank with one sample has none to tell it from, and others have.
    few = torch.randn(1 + (team.rank == 0), 3, dtype=torch.float64)
    given = {"block": "0", "norm_mode": "full", "coupled": False, "team": team}
    normed = nn.Sequential(Normalised())
    said["by a function"] = sentence(lambda: BlockJacobian(normed, few, **given))
    only = nn.Sequential(Unique(team.rank))
    given = {"block": "0", "norm_mode": "eval", "team": team}
    said["twin"] = rounding_reference(BlockJacobian(only, few.float(), **given))
    return said


def work(rank, size, place):
    begin(rank, size, f"{place}/store")
    team = Team(True)
    found = measured(team)
    mine = share_of(batch(), team)
    own = singular_values(network(), mine, block=SPAN, norm_mode="batch", team=team)
    found["values batch"] = own
    said = refused(team) | {"disputed": disputed(team)}
    torch.save((found, said), f"{place}/found-{rank}")
    dist.destroy_process_group()
