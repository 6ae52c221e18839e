"""Models that differentiate inside their own pass: forces, penalties on gradients."""

import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.func import functional_call, grad, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.instruments.agreement import near
from tests.instruments.test_tangent_kernel import jacobian
from theodolite.core import MeasurementError
from theodolite.instruments import GaussNewton, Hessian, Jacobian, tangent_kernel
from theodolite.instruments.differentiate import batch_norm_twice as batch_norm_given
from theodolite.instruments.differentiate import convolution_twice
from theodolite.instruments.distributed.processes import Team
from theodolite.instruments.tangents.layer_sweep import plan

LOSS = nn.MSELoss()


class Attend(nn.Module):
    def forward(self, x):
        heads = x.reshape(len(x), 1, 3, 2)
        out = nn.functional.scaled_dot_product_attention(heads, heads, heads)
        return out.reshape(len(x), 6)


class Convolve(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Conv1d(2, 2, 2, padding=1)

    def forward(self, x):
        return self.inner(x.reshape(len(x), 2, 3)).reshape(len(x), 8)[:, :6]


class ByInstance(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.InstanceNorm1d(2, affine=True)

    def forward(self, x):
        return self.inner(x.reshape(len(x), 2, 3)).reshape(len(x), 6)


LAYERS = {
    "rectifier": nn.ReLU,
    "in place": lambda: nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True)),
    "gelu": nn.GELU,
    "gelu by tanh": lambda: nn.GELU("tanh"),
    "silu": nn.SiLU,
    "layer norm": lambda: nn.LayerNorm(6),
    "instance norm": ByInstance,
    "batch norm": lambda: nn.BatchNorm1d(6),
    "attention": Attend,
    "convolution": Convolve,
}


class Force(nn.Module):
    """Returns how an energy changes with the input, one number of it or all at once."""

    def __init__(self, layer, *, batched):
        super().__init__()
        self.batched = batched
        self.energy = nn.Sequential(
            nn.Linear(3, 6), nn.Tanh(), layer, nn.Tanh(), nn.Linear(6, 2)
        )

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energies = self.energy(x).square()
            if not self.batched:
                return torch.autograd.grad(energies.sum(), x, create_graph=True)[0]
            units = torch.eye(2, dtype=x.dtype)
            found = torch.autograd.grad(
                energies.sum(0), x, units, create_graph=True, is_grads_batched=True
            )
            return found[0].square().sum(0)


def gradient(model, batch, weights):
    """Differentiate the loss once, which torch does rightly for all layers."""
    with sdpa_kernel(SDPBackend.MATH):
        value = LOSS(functional_call(model, weights, batch[0]), batch[1])
        grads = torch.autograd.grad(value, list(weights.values()), allow_unused=True)
    pairs = zip(grads, weights.values(), strict=True)
    return torch.cat(
        [(torch.zeros_like(w) if g is None else g).reshape(-1) for g, w in pairs]
    )


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    ("name", "mode"), [*((name, "eval") for name in LAYERS), ("batch norm", "batch")]
)
def test_products_with_the_hessian(name, mode, batched, monkeypatch):
    monkeypatch.setattr(convolution_twice, "quicker", lambda *_: True)
    monkeypatch.setattr(batch_norm_given, "_WORTH", 0)
    torch.manual_seed(0)
    model = Force(LAYERS[name](), batched=batched).double()
    model.train(mode == "batch")
    batch = torch.randn(5, 3).double(), torch.randn(5, 3).double()
    operator = Hessian(model, batch, loss=LOSS, norm_mode=mode)
    vector = torch.randn(operator.shape[1], dtype=torch.float64)
    parts, step = operator.split(vector), 1e-5
    ahead, behind = (
        gradient(
            model,
            batch,
            {
                n: (p + sign * step * parts[n]).detach().requires_grad_()
                for n, p in model.named_parameters()
            },
        )
        for sign in (1, -1)
    )
    wanted = (ahead - behind) / (2 * step)
    torch.testing.assert_close(operator @ vector, wanted, rtol=1e-5, atol=1e-7)
    assert wanted.norm() > 1e-3


class Bare(nn.Module):
    """The same as people write it, with no thought of a pass without a graph."""

    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

    def forward(self, x):
        x = x.clone().requires_grad_()
        energy = self.energy(x).square().sum()
        return torch.autograd.grad(energy, x, create_graph=True)[0]


def penalised(model, batch):
    inputs = batch[0].clone().requires_grad_()
    outputs = model(inputs)
    (slope,) = torch.autograd.grad(outputs.square().sum(), inputs, create_graph=True)
    return LOSS(outputs, batch[1]) + slope.square().sum(1).mean()


def some(width):
    torch.manual_seed(0)
    return torch.randn(6, 3).double(), torch.randn(6, width).double()


def test_models_that_bring_no_graph_of_their_own():
    model, batch = Bare().double(), some(3)
    given = {"norm_mode": "eval"}
    rows = [
        torch.autograd.grad(out, list(model.parameters()), retain_graph=True)
        for out in model(batch[0]).reshape(-1)
    ]
    matrix = torch.stack([torch.cat([g.reshape(-1) for g in row]) for row in rows])
    found = torch.as_tensor(Jacobian(model, batch, **given).dense())
    torch.testing.assert_close(found, matrix)
    kernel = torch.as_tensor(tangent_kernel(model, batch, **given).matrix)
    torch.testing.assert_close(kernel, matrix @ matrix.T)
    for micro_batch in (None, 4):
        cut = GaussNewton(model, batch, loss=LOSS, **given, micro_batch=micro_batch)
        square = torch.as_tensor(cut.dense())
        torch.testing.assert_close(square, 2 / 18 * matrix.T @ matrix)


class Plain(nn.Module):
    """Batch norm by elementary operators, at weight 1 and bias 0."""

    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def forward(self, x):
        mean, variance = x.mean(0), x.var(0, unbiased=False)
        if self.mode == "frozen":
            mean, variance = mean.detach(), variance.detach()
        if self.mode == "eval":
            mean, variance = torch.zeros_like(mean), torch.ones_like(mean)
        return (x - mean) / (variance + 1e-5).sqrt()


@pytest.mark.parametrize("mode", ["eval", "batch", "full", "frozen"])
def test_a_penalty_on_gradients(mode):
    batch, norm = some(2), nn.BatchNorm1d(4, affine=False)
    model = nn.Sequential(nn.Linear(3, 4), norm, nn.Tanh(), nn.Linear(4, 2)).double()
    plain = nn.Sequential(model[0], Plain(mode), *model[2:])
    wanted = Hessian(plain, batch, loss=penalised, norm_mode="eval").dense()
    given = {"loss": penalised, "norm_mode": mode}
    assert_allclose(Hessian(model, batch, **given).dense(), wanted, atol=1e-12)
    if mode in ("batch", "full"):
        # In a chunk the penalty would not see the others by way of their statistics.
        with pytest.raises(MeasurementError, match="differentiates in its own pass"):
            Hessian(model, batch, **given, micro_batch=3)
    else:
        cut = Hessian(model, batch, **given, micro_batch=3).dense()
        assert_allclose(cut, wanted, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is")
@pytest.mark.parametrize("way", ["back", "forwards"])
def test_derivatives_by_transforms_through_shared_statistics_are_refused(way):
    norm = nn.BatchNorm1d(4, track_running_stats=False)
    model = nn.Sequential(nn.Linear(3, 4), norm, nn.Tanh(), nn.Linear(4, 2)).double()

    def loss(network, batch):
        x, targets = batch
        if way == "back":
            slope = grad(lambda z: network(z).square().sum())(x)
        else:
            slope = jvp(network, (x,), (torch.ones_like(x),))[1]
        return LOSS(network(x), targets) + slope.square().sum(1).mean()

    given = {"loss": loss, "norm_mode": "full"}
    with pytest.raises(MeasurementError, match="differentiates in its own pass"):
        Hessian(model, some(2), **given, micro_batch=3)
    assert Hessian(model, some(2), **given).dense().shape == (34, 34)


class Turning(nn.Module):
    """Returns how its layers turn the input, by a transform of torch."""

    def __init__(self, way):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last, self.way = nn.Linear(3, 4), nn.Linear(4, 3), way

    def layers(self, x):
        return self.last(self.first(x).tanh())

    def forward(self, x):
        return self.way(self, x)


WAYS = {
    "all forwards": lambda m, x: jvp(m.layers, (x,), (x.cos(),))[1],
    "one layer forwards": lambda m, x: m.last(jvp(m.first, (x,), (x.cos(),))[1].tanh()),
    "back": lambda m, x: grad(lambda z: m.layers(z).square().sum())(x),
    "side by side": lambda m, x: torch.vmap(m.layers)(x),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is")
@pytest.mark.parametrize("way", WAYS)
def test_tangent_kernels_of_models_by_transforms(way):
    model = Turning(WAYS[way]).double()
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1)).double()
    rows = jacobian(model, x)
    near(tangent_kernel(model, x, norm_mode="eval").matrix, rows @ rows.T)


def test_a_plan_that_fails_leaves_no_hooks():
    def run(_):
        raise ValueError("no such batch")

    model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="no such batch"):
        plan(model, [None], run, list(model.parameters()), Team())
    assert not model._forward_hooks
