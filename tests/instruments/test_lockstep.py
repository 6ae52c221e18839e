"""All chunks from norm to norm together: right, whatever the model does, and cheap."""

import weakref

import pytest
import torch
from torch import nn
from torch.autograd import Function
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

from tests.instruments.agreement import cut, near
from theodolite.core import MeasurementError
from theodolite.instruments import (
    GaussNewton,
    HalfSquareLoss,
    Hessian,
    Jacobian,
    TangentKernel,
)
from theodolite.instruments.norms.full_statistics import FullStatistics
from theodolite.instruments.norms.lockstep import LockstepChunks
from theodolite.instruments.norms.segments import at_work
from theodolite.instruments.norms.sequential import SequentialChunks
from theodolite.instruments.norms.tensor_store import TensorStore

LOSS = HalfSquareLoss()


class Deep(nn.Module):
    """Residual, in place, with a norm that is used twice and one held constant."""

    def __init__(self, norms):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(norms)])
        used = max(norms - 1, min(norms, 1))
        self.norms = nn.ModuleList([nn.BatchNorm1d(3) for _ in range(used)])
        self.register_buffer("mean", torch.tensor([0.1, -0.2, 0.3]))

    def forward(self, x):
        x = self.first(x)
        for place, layer in enumerate(self.layers):
            out = self.norms[min(place, len(self.norms) - 1)](layer(torch.tanh(x)))
            out += x
            x = functional.batch_norm(out, self.mean, self.mean.square() + 1)
        return x


def data(samples=7):
    generator = torch.Generator().manual_seed(3)
    draw = torch.randn(2, samples, 3, generator=generator, dtype=torch.float64)
    return draw[0], draw[1]


def vector(operator):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(operator.shape[1], generator=generator, dtype=torch.float64)


def kinds(operator):
    return {type(group.statistics) for group in operator._prepared.plan.groups}


@pytest.mark.parametrize("norms", [0, 1, 2, 8])
def test_equal_to_one_graph_at_every_depth(norms):
    model, batch = Deep(norms).double(), data()
    whole = Hessian(model, batch, loss=LOSS, norm_mode="batch")
    swept = Hessian(model, cut(batch, 2, 5), loss=LOSS, norm_mode="full", micro_batch=3)
    v = vector(whole)
    near(swept @ v, whole @ v, rtol=1e-9)
    near(swept.loss_and_gradient()[1], whole.loss_and_gradient()[1], rtol=1e-9)
    assert kinds(swept) == ({LockstepChunks} if norms else {type(None)})


@pytest.mark.parametrize("kind", [GaussNewton, Jacobian, TangentKernel])
def test_operators_on_outputs(kind):
    model, batch = Deep(5).double(), data()
    settings = {"loss": LOSS} if kind is GaussNewton else {}
    whole = kind(model, batch, norm_mode="batch", **settings)
    swept = kind(model, batch, norm_mode="full", micro_batch=3, **settings)
    near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)
    assert kinds(getattr(swept, "jacobian", swept)) == {LockstepChunks}


def test_micro_batches_of_batches_with_statistics_of_their_own():
    model, batch = Deep(3).double(), data(8)
    parts = cut(batch, 4)
    whole = Hessian(model, parts, loss=LOSS, norm_mode="batch")
    swept = Hessian(model, parts, loss=LOSS, norm_mode="batch", micro_batch=3)
    near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)
    assert kinds(swept) == {LockstepChunks}


def test_frozen_statistics_take_two_passes_whatever_the_depth():
    model, batch = Deep(6).double(), data()
    model.norms[-1] = nn.BatchNorm1d(3, affine=False).double()
    model.layers = model.layers[:-1]  # else a norm is applied twice
    calls = []
    model.first.register_forward_hook(lambda *_: calls.append(1))
    whole = Hessian(model, batch, loss=LOSS, norm_mode="frozen")
    swept = Hessian(model, cut(batch, 3), loss=LOSS, norm_mode="frozen")
    near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)
    with torch.no_grad():
        model.first.weight.mul_(1.1)
    calls.clear()
    swept @ vector(whole)
    assert len(calls) == 2 + 2 + 1 + 2  # tapes, checks, the order, the graphs
    near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)


def test_data_that_is_read_again():
    model, batch = Deep(3).double(), data(8)
    loader = DataLoader(TensorDataset(*batch), batch_size=3)
    whole = Hessian(model, batch, loss=LOSS, norm_mode="batch")
    swept = Hessian(model, loader, loss=LOSS, norm_mode="full", micro_batch=2)
    near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)


def chain(norms, channels=4):
    blocks = [
        (nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))
        for _ in range(norms)
    ]
    layers = [layer for pair in blocks for layer in (*pair, nn.ReLU(inplace=True))]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * 36, 3)).double()


@pytest.mark.parametrize("norms", [2, 10])
def test_price_in_gradients_whatever_the_depth(norms):
    model, loss = chain(norms), nn.CrossEntropyLoss()
    batch = torch.randn(8, 4, 6, 6, dtype=torch.float64), torch.arange(8) % 3
    swept = Hessian(model, batch, loss=loss, norm_mode="full", micro_batch=4)
    v = vector(swept)
    swept @ v
    with FlopCounterMode(display=False) as gradient:
        loss(model(batch[0]), batch[1]).backward()
    with FlopCounterMode(display=False) as product:
        swept @ v
    ratio = product.get_total_flops() / gradient.get_total_flops()
    assert 3 < ratio < 4.5


def test_carried_tensors_on_the_host():
    model, batch = Deep(3).double(), data()
    swept = Hessian(model, batch, loss=LOSS, norm_mode="full", micro_batch=3)
    before = swept @ vector(swept)
    for group in swept._prepared.plan.groups:
        group.joint.store = TensorStore(host=True)
    near(swept @ vector(swept), before)


class Rounded(Function):
    """Rounds on the way, and lets gradients through; it takes no duals."""

    @staticmethod
    def forward(ctx, x):
        return (4 * x).round() / 4

    @staticmethod
    def backward(ctx, grad):
        return grad


class WithRounding(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.last = nn.Linear(3, 3)

    def forward(self, x):
        return self.last(Rounded.apply(torch.tanh(self.norm(self.first(x)))))


class WithoutGradients(WithRounding):
    def forward(self, x):
        z = self.norm(self.first(x))
        with torch.no_grad():
            gate = torch.sigmoid(z * 2)
        return self.last(gate * z + z.detach() * self.norm.weight)


class Picking(WithRounding):
    """Cuts by sizes that hang on the data alone."""

    def forward(self, x):
        z, chosen = self.norm(self.first(x)), x[:, 0] > 0
        rows = chosen.nonzero().squeeze(1)
        out = self.last(torch.cat(z.tensor_split(3, 1), 1))
        return out.index_add(0, rows, torch.tanh(z[chosen]))


class Viewed(WithRounding):
    """Writes to memory that two tensors share across a norm."""

    def forward(self, x):
        z = self.first(x)
        left = z[:, :2]
        out = self.norm(torch.tanh(z))
        left.mul_(0.5)
        return self.last(out + z + left.sum(1, keepdim=True))


class Counting(WithRounding):
    """Keeps a count and a view of a buffer that it writes to."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        half = self.seen[:2]
        half.add_(1)
        z = self.norm(self.first(x) + self.seen)
        return self.last(torch.tanh(z))


class Averaging(WithRounding):
    """Reads a buffer, and moves it a little afterwards."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        z = self.first(x - self.mean)
        with torch.no_grad():
            self.mean.lerp_(x.detach().mean(0), 1e-8)
        return self.last(torch.tanh(self.norm(z)))


class Casting(WithRounding):
    """Lets torch cast on a CPU what it would, which is nothing here."""

    def forward(self, x):
        z = self.norm(self.first(x))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = torch.tanh(z)
        return self.last(z)


class Fickle(WithRounding):
    """Takes a way that hangs on what statistics act on."""

    def forward(self, x):
        z = self.norm(self.first(x))
        return self.last(torch.tanh(z) if z.detach().abs().max() > 0 else z)


@pytest.mark.parametrize(
    ("kind", "way", "why"),
    [
        (WithRounding, LockstepChunks, ""),
        (WithoutGradients, LockstepChunks, ""),
        (Picking, LockstepChunks, ""),
        (Viewed, SequentialChunks, "it writes to memory that is shared across a norm"),
        (Fickle, SequentialChunks, "its path may depend on what statistics act on"),
        (Counting, SequentialChunks, "it writes to a view of a buffer"),
        (Averaging, SequentialChunks, "it writes to a buffer that it has read"),
        (
            Casting,
            SequentialChunks,
            "it sets attributes of tensors, or casts by itself",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:the backward of Rounded is not the derivative")
def test_what_models_do_inside(kind, way, why):
    model, batch = kind().double(), data()
    whole = Hessian(model, batch, loss=LOSS, norm_mode="batch")
    swept = Hessian(model, batch, loss=LOSS, norm_mode="full", micro_batch=3)
    near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)
    assert kinds(swept) == {way}
    assert swept.way_reason == why


def test_a_first_chunk_that_does_not_count():
    model, (x, _) = Deep(2).double(), data(12)
    target = torch.tensor([-100] * 4 + [0, 1, 2, 2] * 2)
    given = {"model": model, "batches": (x, target), "loss": nn.CrossEntropyLoss()}
    whole = Hessian(**given, norm_mode="batch")
    swept = Hessian(**given, norm_mode="full", micro_batch=4)
    near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)
    assert (swept.way, swept.way_reason) == ("lockstep", "")


def test_losses_that_are_rounding_go_in_lockstep():
    model, (x, noise) = Deep(3).double(), data(12)
    target = model(x).detach() + 1e-6 * noise
    swept = Hessian(model, (x, target), loss=LOSS, norm_mode="full", micro_batch=4)
    whole = Hessian(model, (x, target), loss=LOSS, norm_mode="batch")
    near(swept @ vector(whole), whole @ vector(whole), rtol=1e-9)
    assert (swept.way, swept.way_reason) == ("lockstep", "")


def test_little_memory_takes_turns():
    model, batch = Deep(3).double(), data(40)
    given = {"loss": LOSS, "norm_mode": "full", "micro_batch": 4}
    roomy = Hessian(model, batch, **given)
    tight = Hessian(model, batch, **given, graph_bytes=roomy.forecast_bytes + 5_000)
    near(tight @ vector(roomy), roomy @ vector(roomy), rtol=1e-9)
    assert (kinds(roomy), kinds(tight)) == ({LockstepChunks}, {SequentialChunks})
    assert (roomy.way, tight.way) == ("lockstep", "sequential")
    assert "chunks in lockstep carry" in tight.way_reason


def test_beside_what_is_carried_one_segment_takes_memory_not_the_whole_graph():
    model, batch = Deep(12).double(), data(40)
    given = {"loss": LOSS, "norm_mode": "full", "micro_batch": 8}
    roomy = Hessian(model, batch, **given)
    roomy @ vector(roomy)
    joint = roomy._prepared.plan.groups[0].joint
    carried = sum(joint.carried_bytes)
    enough = max(roomy.forecast_bytes, carried + at_work(joint.computed_bytes, None))
    assert enough < 0.7 * (roomy.forecast_bytes + carried)
    tight = Hessian(model, batch, **given, graph_bytes=enough)
    near(tight @ vector(roomy), roomy @ vector(roomy), rtol=1e-9)
    assert tight.way == "lockstep"


def test_turns_hold_one_graph_at_a_time(monkeypatch):
    forward, graphs = FullStatistics.forward, []

    def watched(self, chunk, variables):
        assert all(graph() is None for graph in graphs)
        value, shares = forward(self, chunk, variables)
        graphs.append(weakref.ref(shares[0]))
        return value, shares

    model, batch = Deep(3).double(), data()
    given = {"loss": LOSS, "norm_mode": "full", "micro_batch": 3}
    least = Hessian(model, batch, **given).forecast_bytes
    turning = Hessian(model, batch, **given, graph_bytes=least + 1)
    monkeypatch.setattr(FullStatistics, "forward", watched)
    turning.loss_and_gradient()
    turning @ vector(turning)
    assert turning.way == "sequential"
    assert len(graphs) > 20


def test_an_exception_leaves_everything_as_found():
    class Failing(Deep):
        fail = False

        def forward(self, x):
            x = super().forward(x)
            if self.fail:
                raise MeasurementError("as asked")
            return x

    model, batch = Failing(2).double(), data()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    apply = Function.__dict__["apply"]
    operator = Hessian(model, batch, loss=LOSS, norm_mode="full", micro_batch=3)
    model.fail = True
    with pytest.raises(MeasurementError, match="as asked"):
        operator @ vector(operator)
    model.fail = False
    assert Function.__dict__["apply"] is apply
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert (operator @ vector(operator)).isfinite().all()
