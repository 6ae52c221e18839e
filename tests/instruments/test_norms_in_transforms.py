"""Norms in models that differentiate by torch's transforms inside their own pass."""

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.func import grad, jacfwd, jacrev, jvp
from torch.nn import functional

from tests.instruments.orders import as_instruments_do
from theodolite.instruments import Hessian

# What torch loads with the first dual number warns.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is")
LOSS = nn.MSELoss()


def by_duals(energy, x):
    with forward_ad.dual_level():
        out = energy(forward_ad.make_dual(x, x.cos()))
        return forward_ad.unpack_dual(out).tangent


def by_passing_back(energy, x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(energy(x).sum(), x, create_graph=True)[0]


WAYS = {
    "autograd": by_passing_back,
    "grad": lambda energy, x: grad(lambda z: energy(z).sum())(x),
    "jacrev": lambda energy, x: jacrev(lambda z: energy(z).sum((0, 1)))(x).sum(0),
    "vmap of grad": lambda energy, x: torch.vmap(
        grad(lambda z: energy(z.unsqueeze(0)).sum())
    )(x),
    "autograd of vmap": lambda energy, x: by_passing_back(
        torch.vmap(lambda z: energy(z.unsqueeze(0))), x
    ),
    "jvp": lambda energy, x: jvp(energy, (x,), (x.cos(),))[1],
    "jacfwd": lambda energy, x: jacfwd(lambda z: energy(z).sum((0, 1)))(x).sum(0),
    "duals": by_duals,
}

# For each norm the axes that its statistics are taken over, and torch's own.
NORMS = {
    "layer": ([-1], lambda x, w, b: functional.layer_norm(x, (4,), w[:, 0], b[:, 0])),
    "layer without weight": ([-1], lambda x, w, b: functional.layer_norm(x, (4,))),
    "instance": (
        [-1],
        lambda x, w, b: functional.instance_norm(x, weight=w[:, 0], bias=b[:, 0]),
    ),
    "instance, short": (
        [-1],
        lambda x, w, b: torch.instance_norm(
            x, w[:, 0], b[:, 0], None, None, True, 0.1, 1e-5, False
        ),
    ),
    "batch": (
        [0, -1],
        lambda x, w, b: functional.batch_norm(
            x, None, None, w[:, 0], b[:, 0], training=True
        ),
    ),
}


def by_hand(name):
    axes = NORMS[name][0]

    def norm(x, w, b):
        centred = x - x.mean(axes, keepdim=True)
        out = centred / (centred.square().mean(axes, keepdim=True) + 1e-5).sqrt()
        if name == "layer without weight":
            return out
        return out * w.mT + b.mT if name == "layer" else out * w + b

    return norm


class Slope(nn.Module):
    """Returns how an energy behind a norm changes with the input."""

    def __init__(self, norm, way):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(4, 4)
        self.weight = nn.Parameter(torch.rand(4, 1) + 0.5)
        self.bias = nn.Parameter(torch.randn(4, 1))
        self.norm, self.way = norm, way

    def forward(self, x):
        def energy(z):
            return self.norm(self.inner(z).sin(), self.weight, self.bias).tanh()

        return self.way(energy, x)


def data():
    made = torch.Generator().manual_seed(1)
    return [torch.randn(3, 4, 4, generator=made).double() for _ in range(2)]


def product(model, batch, vector):
    """Multiply the Hessian by torch alone."""
    parts = list(model.parameters())

    def flat(found):
        pairs = zip(found, parts, strict=True)
        full = [torch.zeros_like(part) if g is None else g for g, part in pairs]
        return torch.cat([part.reshape(-1) for part in full])

    how = {"allow_unused": True}
    value = LOSS(model(batch[0]), batch[1])
    slope = flat(torch.autograd.grad(value, parts, create_graph=True, **how))
    return flat(torch.autograd.grad(slope @ vector, parts, **how))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NORMS)
def test_third_derivatives_are_those_of_a_norm_by_hand(name, way):
    model = Slope(NORMS[name][1], WAYS[way]).double()
    wanted, batch = Slope(by_hand(name), WAYS[way]).double(), data()
    with Hessian(model, batch, loss=LOSS, norm_mode="batch") as operator:
        vector = torch.randn(operator.shape[1], dtype=torch.float64)
        found = operator @ vector
    torch.testing.assert_close(
        found, product(wanted, batch, vector), rtol=1e-10, atol=1e-12
    )
    assert found.norm() > 1e-3


@pytest.mark.parametrize("way", ["autograd", "grad", "jvp"])
def test_instance_norms_move_their_statistics_as_torch_does(way):
    torch.manual_seed(0)
    plain, inside = (
        nn.InstanceNorm1d(4, affine=True, track_running_stats=True) for _ in range(2)
    )
    x = torch.randn(3, 4, 5)
    wanted = WAYS[way](plain, x)
    with as_instruments_do():
        found = WAYS[way](inside, x)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(inside.state_dict(), plain.state_dict())
    assert float(inside.running_mean.abs().max()) > 0


def test_instance_norms_on_running_statistics():
    torch.manual_seed(0)
    norm = nn.InstanceNorm1d(4, affine=True, track_running_stats=True).double().eval()
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)

    def line(x, w, b):
        out = (x - norm.running_mean[:, None]) * w + b
        return out / (norm.running_var[:, None] + norm.eps).sqrt()

    def theirs(x, w, b):
        level = b[:, 0] / (norm.running_var + norm.eps).sqrt()
        return functional.instance_norm(
            x, norm.running_mean, norm.running_var, w[:, 0], level, False
        )

    found, wanted = (Slope(n, WAYS["grad"]).double() for n in (theirs, line))
    batch = data()
    with Hessian(found, batch, loss=LOSS, norm_mode="eval") as operator:
        vector = torch.randn(operator.shape[1], dtype=torch.float64)
        mine = operator @ vector
    torch.testing.assert_close(mine, product(wanted, batch, vector))


def test_half_precision_stays_what_it_was():
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    wanted = grad(lambda z: functional.layer_norm(z, (4,)).tanh().sum())(x)
    with as_instruments_do():
        found = grad(lambda z: functional.layer_norm(z, (4,)).tanh().sum())(x)
    torch.testing.assert_close(found, wanted, rtol=0.05, atol=0.05)


def test_mistaken_calls_are_refused_in_the_words_of_torch():
    def call(x):
        return functional.layer_norm(x, (3,)).sum()

    with as_instruments_do(), pytest.raises(RuntimeError, match="normalized_shape"):
        grad(call)(torch.randn(2, 4))
    with as_instruments_do(), pytest.raises(ValueError, match="spatial element"):
        functional.instance_norm(torch.randn(2, 4, 1, requires_grad=True))
