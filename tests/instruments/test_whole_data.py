"""One graph on the host or chunks in lockstep: what they take, and which is chosen."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.instruments.agreement import cut, near
from tests.instruments.test_lockstep import LOSS, Deep, data, kinds, vector
from theodolite.instruments import GaussNewton, Hessian, Problem
from theodolite.instruments.differentiate.derivatives import Curve
from theodolite.instruments.norms.lockstep import LockstepChunks
from theodolite.instruments.norms.tensor_store import offloaded
from theodolite.instruments.passes.prepared_model import PreparedModel
from theodolite.instruments.passes.problem import Measurement
from theodolite.instruments.passes.product_strategy import (
    Machine,
    ProductStrategy,
    StrategyChoice,
    measured_rate,
)
from theodolite.instruments.passes.set_up import GraphMemory

GIB = 2**30


@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_a_graph_on_the_host_gives_the_same_products(kind, monkeypatch):
    monkeypatch.setattr("theodolite.instruments.norms.tensor_store._SMALL", 0)
    model, batch = Deep(3).double(), data()
    plain = kind(model, batch, loss=LOSS, norm_mode="batch")
    moved = kind(model, batch, loss=LOSS, norm_mode="batch")
    moved._prepared.plan = replace(moved._prepared.plan, offload=True)
    for _ in range(2):
        near(moved @ vector(plain), plain @ vector(plain))


def test_a_tensor_is_moved_once_and_small_ones_stay(monkeypatch):
    moved = []

    def put(store, tensor):
        moved.append(tuple(tensor.shape))
        return tensor.detach().clone()

    store = "theodolite.instruments.norms.tensor_store.TensorStore"
    monkeypatch.setattr(f"{store}.put", put)
    weight = torch.randn(50, 50, requires_grad=True)
    x = torch.randn(40, 50)
    with offloaded([weight], small=1_000):
        z = torch.tanh(x @ weight)
        value = (z * z.exp()).sum() + (weight[0] * 2).sum()
    (gradient,) = torch.autograd.grad(value, weight)
    z = torch.tanh(x @ weight)
    near(
        gradient,
        torch.autograd.grad((z * z.exp()).sum() + 2 * weight[0].sum(), weight)[0],
    )
    # The input, what tanh and the product both keep, and what exp and the product do.
    assert moved == [(40, 50)] * 3


@pytest.mark.parametrize("small", [0, 1_000])
def test_writing_to_what_a_graph_keeps_is_never_silent(small):
    weight = torch.randn(3, requires_grad=True)
    with offloaded([weight], small=small):
        kept = torch.exp(weight)
        value = kept * 1.0
        kept.mul_(2)
        value = (value + kept).sum()
    if not small:  # what was moved has its values from before
        near(torch.autograd.grad(value, weight)[0], 3 * weight.exp(), rtol=1e-6)
        return
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(value, weight)


def prepared_for(model, batches):
    problem = Problem(model, batches, loss=LOSS, norm_mode="full")
    measured = Measurement(
        kind="Hessian",
        measure=problem.measured_loss(),
        build=Curve,
        walk=lambda curve, _, tangents: curve.product(tangents),
    )
    return GraphMemory(prepared=PreparedModel(problem, measured), allowed=GIB)


def test_what_the_ways_take_is_forecast_from_a_few_samples():
    model, batch = Deep(5).double(), data(48)
    memory = prepared_for(model, cut(batch, 16, 32))
    with memory.prepared.sheltered():
        ways = {way.name: way for way in StrategyChoice(memory=memory).ways()}
        offloads = StrategyChoice(memory=memory).offloads()
    swept = Hessian(model, batch, loss=LOSS, norm_mode="full", micro_batch=16)
    swept @ vector(swept)
    (group,) = swept._prepared.plan.groups
    carried, adjoints = group.joint.carried_bytes
    assert kinds(swept) == {LockstepChunks}
    hosted = ways["lockstep on the host"]
    assert hosted.host_bytes == pytest.approx(carried, rel=0.02)
    taken = ways["lockstep"].device_bytes - hosted.device_bytes
    assert taken == pytest.approx(carried, rel=0.02)
    assert hosted.device_bytes > adjoints
    assert ways["one graph"].device_bytes > 2 * ways["one graph on the host"].host_bytes
    assert not offloads  # on a CPU there is no host to turn to


def test_batches_that_cannot_be_joined_leave_room_for_their_own_graphs(monkeypatch):
    monkeypatch.setattr(StrategyChoice, "offloads", lambda self: True)
    layers = nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2), nn.AdaptiveAvgPool1d(1)
    model = nn.Sequential(*layers, nn.Flatten()).double()
    shapes = [(4, 1, 6), (4, 1, 8)]
    generator = torch.Generator().manual_seed(0)
    batches = [
        (
            torch.randn(s, generator=generator, dtype=torch.float64),
            torch.zeros(4, 2).double(),
        )
        for s in shapes
    ]
    operator = Hessian(model, batches, loss=LOSS, norm_mode="full")
    operator @ vector(operator)
    assert operator.way == "lockstep"
    assert operator.forecast_bytes > 0
    assert not operator._prepared.plan.offload


@pytest.mark.parametrize(
    ("device", "host", "rate", "wanted"),
    [
        (100, 0, 1e9, "one graph"),
        (60, 0, 1e9, "lockstep"),
        (60, 99, 1e9, "one graph on the host"),
        (60, 99, 10.0, "lockstep"),
        (15, 50, 1e9, "lockstep on the host"),
        (5, 99, 1e9, None),
    ],
)
def test_the_fastest_way_that_fits_is_chosen(device, host, rate, wanted):
    ways = [
        ProductStrategy(name="one graph", gradients=2.5, device_bytes=90),
        ProductStrategy(
            name="one graph on the host",
            gradients=2.5,
            device_bytes=20,
            host_bytes=80,
            moved_bytes=100,
        ),
        ProductStrategy(name="lockstep", gradients=5.0, device_bytes=50),
        ProductStrategy(
            name="lockstep on the host",
            gradients=5.0,
            device_bytes=10,
            host_bytes=40,
            moved_bytes=120,
        ),
    ]
    machine = Machine(
        device_bytes=device,
        host_bytes=host,
        gradient_seconds=1.0,
        bytes_per_second=rate,
    )
    found = machine.cheapest(ways)
    assert (None if found is None else found.name) == wanted


def test_transfers_are_timed():
    assert 1e6 < measured_rate(torch.device("cpu"), size=2**20) < 1e13


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
class TestOnACard:
    def test_lockstep_here_and_on_the_host(self):
        model, batch = Deep(5).double().cuda(), [t.cuda() for t in data(48)]
        whole = Hessian(model, tuple(batch), loss=LOSS, norm_mode="batch")
        v = vector(whole).cuda()
        swept = Hessian(model, tuple(batch), loss=LOSS, norm_mode="full", micro_batch=9)
        near((swept @ v).cpu(), (whole @ v).cpu(), rtol=1e-9)
        for group in swept._prepared.plan.groups:
            group.joint.store.host = True
        near((swept @ v).cpu(), (whole @ v).cpu(), rtol=1e-9)

    def test_one_graph_on_the_host_where_it_does_not_fit_on_the_card(self):
        model = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten()
        ).cuda()
        x = torch.randn(512, 3, 32, 32, device="cuda")
        y = torch.zeros(512, 32 * 32 * 32, device="cuda")
        parts = cut((x, y), 128, 256, 384)
        whole = Hessian(model, (x, y), loss=LOSS, norm_mode="batch")
        v = vector(whole).float().cuda()
        tight = Hessian(
            model,
            parts,
            loss=LOSS,
            norm_mode="full",
            graph_bytes=whole.forecast_bytes // 2,
        )
        near((tight @ v).cpu(), (whole @ v).cpu(), rtol=1e-3)
