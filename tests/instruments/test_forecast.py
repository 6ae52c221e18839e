"""Memory is forecast before it is taken."""

import pytest
import torch
from torch import nn

from tests.cases import CASES
from tests.instruments.agreement import cut, near
from theodolite.core import MeasurementError
from theodolite.instruments import EmpiricalFisher, GaussNewton, Hessian, Jacobian
from theodolite.instruments.differentiate.derivatives import Curve
from theodolite.instruments.norms.coupling import MemoryBudget
from theodolite.instruments.passes.forecast import (
    available_bytes,
    budget,
    few_samples,
    predict_bytes,
    saved_tensors,
)
from theodolite.instruments.passes.live_memory import live_bytes, predict_peak
from theodolite.instruments.passes.set_up import GraphMemory


def tower():
    return nn.Sequential(nn.Linear(10, 50), nn.Tanh(), nn.Linear(50, 2))


def test_a_graph_is_counted_once_and_without_what_exists():
    model, x = tower(), torch.randn(8, 10)
    known = [*model.parameters(), x]
    with saved_tensors(known) as saved:
        model(x).square().sum()
    # The tanh's output and the last layer's, which the square keeps.
    assert saved.bytes == 4 * 8 * (50 + 2)


def test_few_samples_tell_of_many():
    model, leaves = tower(), list(tower().parameters())

    def measure(samples):
        x = torch.randn(samples, 10)
        leaves[:] = model.parameters()
        with saved_tensors([*model.parameters(), x]) as saved:
            Curve(model(x).square().mean(), leaves)
        return saved.bytes

    predicted = predict_bytes({n: measure(n) for n in few_samples(4096, 8)}, 4096)
    assert predicted == pytest.approx(2.7 * measure(4096), rel=0.05)


def test_available_memory_is_a_share_of_the_machine():
    device = torch.device("cpu")
    assert 0 < available_bytes(device) < 2**50
    assert budget(None, device) <= available_bytes(device)
    assert budget(123, device) == 123


@pytest.mark.parametrize("kind", [Hessian, GaussNewton, Jacobian])
def test_too_large_a_graph_is_refused_and_small_passes_are_not(kind):
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make(samples=64)
    settings = {"norm_mode": "batch"} | ({} if kind is Jacobian else {"loss": loss})
    whole = kind(model, batch, **settings)
    allowed = whole.forecast_bytes // 3
    with pytest.raises(
        MeasurementError, match=r"64 samples takes about .* GiB"
    ) as said:
        kind(model, batch, graph_bytes=allowed, **settings)
    assert "micro_batch" in str(said.value)
    vector = torch.randn(whole.shape[1], dtype=torch.float64)
    lean = kind(model, batch, graph_bytes=allowed, micro_batch=8, **settings)
    near(lean @ vector, whole @ vector)


def test_graphs_of_many_batches_are_kept_only_if_all_fit():
    model, batch, loss = next(c for c in CASES if c.name == "mlp").make(samples=64)
    passes = []
    model.register_forward_hook(lambda *_: passes.append(1))
    parts, products = cut(batch, 16, 32, 48), []
    allowed = None
    for extra in (0, 4):
        operator = Hessian(
            model, parts, loss=loss, norm_mode="batch", graph_bytes=allowed
        )
        vector = torch.ones(operator.shape[0], dtype=torch.float64)
        operator @ vector
        count = len(passes)
        products.append(operator @ vector)
        assert len(passes) == count + extra
        allowed = 2 * operator.forecast_bytes
    near(*products)


def test_a_model_that_takes_no_fewer_samples_is_not_forecast():
    class Rigid(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(x.reshape(8, 3))

    batch = (torch.randn(8, 3), torch.randint(0, 3, (8,)))
    operator = Hessian(Rigid(), batch, loss=nn.CrossEntropyLoss(), norm_mode="batch")
    assert operator.dense().any()


def test_bytes_alive_are_those_of_storages_until_they_are_freed():
    x = torch.zeros(4)

    def work():
        y = x + 1  # 16 bytes
        view = y.view(2, 2)  # of the same
        del y
        z = view * 2  # 16 more
        del view
        return z + z  # 16 more, and the first are gone

    assert live_bytes(work, [x]) == [16, 16, 32, 32]


def test_bytes_alive_are_seen_on_the_way_back():
    x = torch.zeros(100, requires_grad=True)

    def work():
        y = x.exp()
        torch.autograd.grad(y.sum(), x)

    # The exponentials and one product with them; ones are spread without a copy.
    assert max(live_bytes(work, [x])) in (800 + 4 * part for part in range(4))


@pytest.mark.parametrize("kind", [Hessian, GaussNewton, EmpiricalFisher])
@pytest.mark.parametrize("name", ["mlp", "conv_bn_resnet", "attention", "wide"])
def test_few_samples_tell_the_peak_of_many(kind, name, monkeypatch):
    model, batch, loss = cases()[name]
    settings, told = {"norm_mode": "batch", "loss": loss}, []

    def predict(self, samples, plainly=GraphMemory.predict):
        told.append(self.counted(samples))
        return plainly(self, samples)

    monkeypatch.setattr(GraphMemory, "predict", predict)
    operator = kind(model, batch, **settings)
    vector = torch.ones(operator.shape[1], dtype=torch.float64)
    known = [*model.parameters(), *model.buffers(), *batch, vector]
    taken = max(live_bytes(lambda: operator.matvec(vector), known))
    assert told[-1] == pytest.approx(1.2 * taken, rel=0.03)


def cases():
    found = {c.name: c for c in CASES}
    made = {name: case.make(samples=512) for name, case in found.items()}
    # Its outputs are larger than all else.
    wide = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 300)).double()
    x = torch.randn(512, 4, dtype=torch.float64)
    batch = (x, torch.arange(512) % 300)
    deep = nn.Sequential(*[Residual(16) for _ in range(6)], nn.Linear(16, 2)).double()
    deeply = torch.randn(512, 16, dtype=torch.float64), torch.arange(512) % 2
    made["deep"] = (deep, deeply, nn.CrossEntropyLoss())
    return made | {"wide": (wide, batch, nn.CrossEntropyLoss())}


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.branch = nn.Linear(width, width)

    def forward(self, x):
        return x + self.branch(x).relu()


@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_chunks_that_share_statistics_are_not_forecast_tightly(kind, monkeypatch):
    """By turns they take more than a chunk does by its own statistics."""
    monkeypatch.setattr(GraphMemory, "on_gpu", True)
    monkeypatch.setattr(GraphMemory, "room", lambda self, _: MemoryBudget(device=0))
    model, batch, loss = cases()["conv_bn_resnet"]
    given = {"loss": loss, "norm_mode": "full", "micro_batch": 256}
    wanted = kind(model, batch, **given).forecast_bytes
    with pytest.raises(MeasurementError, match="256 samples takes about"):
        kind(model, batch, **given, graph_bytes=int(0.9 * wanted))
    given |= {"norm_mode": "batch", "micro_batch": None}
    given["graph_bytes"] = int(1.8 * wanted)
    assert kind(model, batch, **given).forecast_bytes < 1.8 * wanted


def test_what_joined_batches_take_again_is_counted():
    model = nn.Sequential(nn.BatchNorm1d(900), nn.Linear(900, 1, bias=False))
    batch = torch.randn(64, 900), torch.randn(64, 1)
    given = {"loss": nn.MSELoss(), "norm_mode": "full"}
    wanted = Hessian(model, batch, **given).forecast_bytes
    inputs = batch[0].nbytes + batch[1].nbytes
    parts = cut(batch, 32)
    for allowed, groups in ((wanted + inputs, 1), (wanted + inputs - 1, 2)):
        found = Hessian(model, parts, **given, graph_bytes=allowed)
        assert sum(len(group.chunks) for group in found._prepared.plan.groups) == groups


def test_a_loss_that_wants_all_samples_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setattr(GraphMemory, "on_gpu", True)
    model, batch, _ = cases()["mlp"]

    def output_loss(outputs, targets):
        if len(outputs) < 512:
            raise KeyError("the rest")
        return outputs.square().mean()

    given = {"outputs": lambda model, batch: model(batch[0]), "norm_mode": "batch"}
    given["output_loss"] = output_loss
    wanted = GaussNewton(model, batch, **given).forecast_bytes
    with pytest.raises(MeasurementError, match="512 samples takes about"):
        GaussNewton(model, batch, **given, graph_bytes=wanted - 1)


def test_hardly_more_samples_are_tried_than_pass_at_once():
    tried = []
    for samples in (9, 3, 1):
        few = few_samples(samples, 4)
        tried.extend(few)
        predicted = predict_bytes({n: 100 + 10 * n for n in few}, samples)
        assert predicted == int(2.7 * (100 + 10 * samples))
        peak = predict_peak(lambda n: [tried.append(n) or 100 + 10 * n], samples)
        assert peak == int(1.2 * (100 + 10 * samples))
    assert tried == [2, 4, 2, 4, 2, 3, 2, 3, 2, 3, 1, 2]


@pytest.mark.parametrize("kind", [GaussNewton, Jacobian])
def test_one_graph_and_its_outputs_are_held_at_a_time(kind):
    """However many batches there are, where graphs of none of them are kept."""
    model, batch, loss = cases()["deep"]
    given = {"norm_mode": "eval", "micro_batch": 64}
    given |= {} if kind is Jacobian else {"loss": loss}
    peaks = []
    for count in (64, 512):
        few = tuple(part[:count] for part in batch)
        operator = kind(model, few, **given)
        vector = torch.ones(operator.shape[1], dtype=torch.float64)
        known = [*model.parameters(), *few, vector]
        peaks.append(max(live_bytes(lambda o=operator, v=vector: o @ v, known)))
    assert peaks[1] < 1.1 * peaks[0]


def test_a_peak_that_moves_with_the_samples_is_found():
    # Of few samples the first operator has the most alive, of many the last.
    assert predict_peak(lambda n: [10_000, 10 + 3 * n], 100_000) == int(1.2 * 300_010)
    assert predict_peak(lambda n: [1] * n, 100) is None  # more operators for more
    assert predict_peak(lambda n: [n], 100, at_most=2) is None
