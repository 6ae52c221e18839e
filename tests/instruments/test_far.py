"""What stands for an operator elsewhere gives what the operator gives here.

Members are a thread each question: modes of torch reach no further, as it is with
processes, and what is sent is a copy.
"""

import copy
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.data import DataLoader

from theodolite.core import ConfigError
from theodolite.instruments import Hessian, TangentKernel, extremes_of
from theodolite.instruments.operators import station, twin
from theodolite.instruments.operators.graph_noise import graph_noise


class OneRoom:
    """An executor whose crew sits in this process, and counts as many as it is told."""

    def __init__(self, size):
        self.size, self.sent = size, []

    def crew(self, begin):
        seat = SimpleNamespace(
            rank=0,
            size=1,
            threads=torch.get_num_threads(),
            fetch=lambda handle: copy.deepcopy(self.sent[handle]),
        )
        self.station = begin(seat)
        return self

    def put(self, value):
        self.sent.append(copy.deepcopy(value))
        return len(self.sent) - 1

    def ask(self, question, *arguments):
        with ThreadPoolExecutor(1) as room:
            return room.submit(question, self.station, *arguments).result()


def similarity(outputs, targets):
    """A loss of all samples together."""
    return torch.logsumexp(outputs @ outputs.T, 1).mean()


def case(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    x = torch.randn(8, 3, dtype=torch.float64)
    return model, (x, torch.randint(0, 2, (8,)))


def pair(kind: Any, *subject, size=4, **settings: Any) -> tuple[Any, Any, OneRoom]:
    executor = OneRoom(size)
    here, there = (
        kind(*subject, **settings),
        kind(*subject, **settings, executor=executor),
    )
    return here, there, executor


def same(there, here):
    vector = torch.linspace(-1, 1, here.shape[1], dtype=here.dtype)
    assert_close(there @ vector, here @ vector, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("norm_mode", ["eval", "full"])
def test_a_batch_whose_samples_hang_together_is_not_cut(norm_mode, size):
    given = {"loss": similarity, "norm_mode": norm_mode}
    here, there, executor = pair(Hessian, *case(), size=size, **given)
    same(there, here)
    order = there._order()
    assert [len(executor.sent[handle][0]) for handle in order.batches] == [8]


@pytest.mark.parametrize("kind", [Hessian, TangentKernel])
def test_a_batch_of_samples_apart_is_cut(kind):
    model, batch = case()
    given: dict[str, Any] = {"loss": nn.CrossEntropyLoss()} if kind is Hessian else {}
    data = batch if kind is Hessian else batch[0]
    here, there, _ = pair(kind, model, data, norm_mode="eval", **given)
    same(there, here)
    assert len(there._order().batches) == 4


def test_batches_of_inputs_alone_stay_several():
    model, (x, _) = case()
    data = DataLoader(cast(Any, x), batch_size=4)
    here, there, _ = pair(TangentKernel, model, data, size=2, norm_mode="eval")
    same(there, here)


def test_it_follows_its_data():
    model, (x, y) = case()
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}
    here, there, executor = pair(
        Hessian, model, [(x[:5], y[:5]), (x[5:], y[5:])], **given
    )
    same(there, here)
    before = here @ torch.ones(here.shape[1], dtype=torch.float64)
    n_sent = len(executor.sent)
    same(there, here)
    assert len(executor.sent) == n_sent + 1, "only the vector is sent"
    x *= 2
    after = here @ torch.ones(here.shape[1], dtype=torch.float64)
    assert (after - before).norm() > 1e-3
    same(there, here)


@pytest.mark.parametrize("norm_mode", ["eval", "full"])
def test_it_says_what_its_members_do(norm_mode):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()
    _, (x, y) = case()
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": norm_mode, "micro_batch": 4}
    here, there, _ = pair(Hessian, model, (x, y), size=1, **given)
    assert there.way == here.way
    same(there, here)
    assert there.way == here.way
    assert there.way_reason == here.way_reason
    assert there.graphs_held == 0
    assert [len(part) for part in there.changed_data(lambda batch: batch)] == [8, 8]
    kernel = pair(TangentKernel, model, x, size=1, norm_mode="eval")[1]
    assert kernel.way == "graphs"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"norm_mode": "eval"}, "Hessian: missing a required argument: 'loss'"),
        ({"loss": similarity}, "Hessian: missing a required argument: 'norm_mode'"),
        (
            {"loss": similarity, "norm_mode": "eval", "micro_bach": 2},
            "Hessian: got an unexpected keyword argument 'micro_bach'",
        ),
    ],
)
def test_arguments_are_checked_before_anything_is_sent(settings: Any, words):
    executor = OneRoom(1)
    with pytest.raises(TypeError) as caught:
        Hessian(*case(), executor=cast(Any, executor), **settings)
    assert str(caught.value) == words
    assert not executor.sent


def test_a_subject_without_data_is_told():
    model, _ = case()
    with pytest.raises(TypeError, match="missing a required argument: 'batches'"):
        cast(Any, TangentKernel)(model, norm_mode="eval", executor=OneRoom(1))


@pytest.mark.parametrize("executor", [3, OneRoom, "ray"])
def test_something_else_than_an_executor_is_told(executor):
    model, (x, _) = case()
    with pytest.raises(ConfigError, match=r"^executor is .*pass a RayCluster\(…\)"):
        TangentKernel(model, x, norm_mode="eval", executor=executor)


def test_vectors_are_kept_here():
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}
    _, there, _ = pair(Hessian, *case(), size=1, **given)
    for some in (there, there.block(["0.weight"])):
        with pytest.raises(ConfigError, match="with an executor all vectors are kept"):
            extremes_of(some, basis="shared", method="products")


class Narrow(nn.Module):
    """A network in float64 that computes in another type."""

    def __init__(self, inner, kind):
        super().__init__()
        self.inner, self.kind = inner, kind

    def forward(self, x):
        hidden = self.inner[1](self.inner[0](x.double()).to(self.kind))
        return self.inner[2](hidden.double())


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_rounding_within_the_members_is_told(kind):
    model, (x, y) = case()
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}
    here, there, _ = pair(Hessian, Narrow(model, kind), (x, y), size=1, **given)
    for some in (lambda whole: whole, lambda whole: whole.block(["inner.0.weight"])):
        near, far = graph_noise(some(here)), graph_noise(some(there))
        assert near is not None
        assert far is not None
        assert far.norm == pytest.approx(near.norm, rel=1e-6)


def test_a_twin_has_to_fit_where_members_are(monkeypatch):
    model, (x, y) = case()
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}
    _, there, _ = pair(Hessian, model.float(), (x.float(), y), **given)
    vectors = twin.float64_bytes(there.shape[1], None)
    assert vectors < twin.float64_bytes(there.shape[1], there.forecast_bytes)
    monkeypatch.setattr(twin, "available_bytes", lambda device: vectors)
    for whole in (there, there.block(["0.weight"])):
        finer = twin.twin_of(whole)
        assert finer is not None
        assert finer.finer
    with monkeypatch.context() as short:
        short.setattr(station, "available_bytes", lambda device: vectors)
        moved = twin.twin_of(there)
    assert moved is not None
    assert not moved.finer
