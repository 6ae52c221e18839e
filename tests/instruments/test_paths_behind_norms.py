"""Passes that no tape tells truly: they are refused, or found out by plain passes."""

import pytest
import torch
from torch import nn
from torch.autograd import Function
from torch.nn import functional

from tests.instruments.agreement import cut, near
from tests.instruments.test_lockstep import LOSS, WithRounding, data, vector
from theodolite.instruments import Hessian
from theodolite.instruments.norms.tape import NotOnTape, record


class Standardised(Function):
    @staticmethod
    def forward(ctx, x):
        return functional.batch_norm(x, None, None, training=True).exp()


class Counted(Function):
    @staticmethod
    def forward(ctx, x, buffer):
        return x * buffer.add_(1)


def read_then_written(x, buffer, sharing):
    z = x * buffer
    sharing.add_(1)
    return z


def written_then_read(x, buffer, sharing):
    sharing.add_(1)
    return x * buffer


def written_and_returned(x, buffer, sharing):
    return Counted.apply(x, buffer) * 2


def norm_within(x, buffer, sharing):
    return Standardised.apply(x) * buffer


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (read_then_written, "a buffer that it has read"),
        (written_then_read, "a buffer that it has written to"),
        (written_and_returned, "returns something new"),
        (norm_within, "part of another call"),
    ],
)
def test_what_a_tape_refuses(run, why):
    x, buffer = torch.randn(4, 3), torch.zeros(3)
    sharing = buffer[:]
    with pytest.raises(NotOnTape, match=why):
        record(lambda: run(x, buffer, sharing).sum(), [x])


class Routed(WithRounding):
    """Has a second layer for those samples that stand out behind the norm."""

    share = 1.0

    def chosen(self, z):
        return (z.detach()[:, 0] > 1.3).nonzero().squeeze(1)

    def forward(self, x):
        z = self.norm(self.first(x))
        out, chosen = torch.tanh(self.last(z)), self.chosen(z)
        if len(chosen):
            extra = torch.tanh(self.first(z[chosen]))
            out = out.index_add(0, chosen, extra, alpha=self.share)
        return out


class Masked(Routed):
    def chosen(self, z):
        return torch.arange(len(z))[z.detach()[:, 0] > 1.3]


class Sliced(Routed):
    def chosen(self, z):
        count = (z.detach()[:, 0] > 1.3).sum()
        return z.detach()[:, 0].argsort(descending=True)[:count]


class Unseen(Routed):
    """Has no call whose name tells that the size of its result hangs on values."""

    def chosen(self, z):
        return Standing.apply(z.detach()[:, 0])


class Faint(Unseen):
    share = 1e-8


class Standing(Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 1.3).nonzero().squeeze(1)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (Routed, {"sequential"}),
        (Masked, {"sequential"}),
        (Sliced, {"sequential"}),
        (Unseen, {"sequential", "lockstep"}),  # where all chunks keep to their paths
        (Faint, {"sequential", "lockstep"}),
    ],
)
def test_paths_that_hang_on_sizes_behind_a_norm(kind, wanted):
    ways = set()
    for seed in (0, 5, 7):
        torch.manual_seed(seed)
        model, batch = kind().double(), torch.randn(2, 12, 3, dtype=torch.float64)
        given = {"loss": LOSS, "model": model, "batches": tuple(batch)}
        whole = Hessian(**given, norm_mode="batch")
        swept = Hessian(**given, norm_mode="full", micro_batch=3)
        near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)
        ways.add(swept.way)
        assert bool(swept.way_reason) == (swept.way == "sequential")
    assert ways == wanted


class RoutedTwice(Unseen):
    """Has a norm behind the routing, whose moments hang on it."""

    def __init__(self):
        super().__init__()
        self.second = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.second(super().forward(x))


def test_frozen_statistics_behind_paths_that_hang_on_sizes():
    for seed in (0, 5, 7):
        torch.manual_seed(seed)
        model, batch = RoutedTwice().double(), data(12)
        whole = Hessian(model, batch, loss=LOSS, norm_mode="frozen")
        swept = Hessian(model, cut(batch, 3, 6, 9), loss=LOSS, norm_mode="frozen")
        near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)
