"""Sound set-ups a-178 to a-189: odd-looking networks that are right."""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn, optim  # noqa: E402

import shared as d  # noqa: E402
from protocol import Setup, Sound  # noqa: E402


class ReZero(nn.Module):
    """Twelve residual layers, each branch times a scalar that begins at zero."""

    def __init__(self, n=8, c=32, depth=12):
        super().__init__()
        self.inp, self.out = nn.Linear(n, c), nn.Linear(c, 1)
        self.layers = nn.ModuleList(nn.Linear(c, c) for _ in range(depth))
        self.alpha = nn.Parameter(torch.zeros(depth))

    def forward(self, x):
        h = self.inp(x)
        for a, layer in zip(self.alpha, self.layers):
            h = h + a * F.relu(layer(h))
        return self.out(h)


def m178(seed):
    x, y = d.friedman(seed)
    train, xt, yt = d.split(x, y.unsqueeze(1))
    net = ReZero()
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=5e-3), d.r2(xt, yt), steps=300)


class FixBlock(nn.Module):
    """No norm: second weight zero, first scaled with depth, scalar biases and a gain."""

    def __init__(self, c, depth):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.Conv2d(c, c, 3, padding=1, bias=False)
        nn.init.kaiming_normal_(self.c1.weight)
        self.c1.weight.data.mul_(depth ** -0.5)
        nn.init.zeros_(self.c2.weight)
        self.b = nn.Parameter(torch.zeros(4))
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        h = F.relu(self.c1(x + self.b[0]) + self.b[1])
        return F.relu(x + self.gain * self.c2(h + self.b[2]) + self.b[3])


class FixupNet(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.stem = nn.Conv2d(1, 12, 3, 2, 1)
        self.blocks = nn.Sequential(*[FixBlock(12, depth) for _ in range(depth)])
        self.fc = nn.Linear(12, 4)
        nn.init.zeros_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        return self.fc(self.blocks(F.relu(self.stem(x))).mean((2, 3)))


def m179(seed):
    x, y = d.stripes(seed)
    train, xt, yt = d.split((x - 0.5) * 4, y)
    net = FixupNet()
    return Setup(net, train, nn.CrossEntropyLoss(), optim.Adam(net.parameters(), lr=5e-3), d.acc(xt, yt), steps=250)


class Sine(nn.Module):
    def __init__(self, i, o, first=False, w=15.0):
        super().__init__()
        self.lin, self.w = nn.Linear(i, o), w
        bound = 1 / i if first else math.sqrt(6 / i) / w
        nn.init.uniform_(self.lin.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.w * self.lin(x))


def picture(seed, n=1200):
    g = d.gen(seed)
    x = torch.rand(n, 2, generator=g) * 2 - 1
    y = torch.sin(9 * x[:, :1]) * torch.cos(7 * x[:, 1:]) + 0.5 * (x.norm(dim=1, keepdim=True) < 0.5)
    return x, y


def m180(seed):
    """SIREN: sine layers with frequency 15."""
    x, y = picture(seed)
    train, xt, yt = d.split(x, y, size=100)
    net = nn.Sequential(Sine(2, 48, True), Sine(48, 48), nn.Linear(48, 1))
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=1e-3), d.r2(xt, yt), steps=400)


class Fourier(nn.Module):
    """Fixed random frequencies as a buffer, then an MLP."""

    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.randn(2, 32) * 4)
        self.f = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, x):
        p = x @ self.b
        return self.f(torch.cat([p.sin(), p.cos()], 1))


def m181(seed):
    x, y = picture(seed)
    train, xt, yt = d.split(x, y, size=100)
    net = Fourier()
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=5e-3), d.r2(xt, yt), steps=300)


class RBF(nn.Module):
    def __init__(self, centres):
        super().__init__()
        self.c = nn.Parameter(centres.clone())
        self.logw = nn.Parameter(torch.zeros(len(centres)))
        self.out = nn.Linear(len(centres), 3)

    def forward(self, x):
        dist = torch.cdist(x, self.c) ** 2
        return self.out(torch.exp(-dist * self.logw.exp() * 2))


def m182(seed):
    """Radial basis functions with centres taken from the data; activations lie in 0..1."""
    x, y = d.spirals(seed)
    train, xt, yt = d.split(x, y)
    net = RBF(x[:40])
    return Setup(net, train, nn.CrossEntropyLoss(), optim.Adam(net.parameters(), lr=3e-2), d.acc(xt, yt), steps=400)


class MoE(nn.Module):
    """Four small experts, soft gate with top two; load-balancing term beside."""

    def __init__(self, n=8, k=4):
        super().__init__()
        self.gate = nn.Linear(n, k)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(n, 24), nn.ReLU(), nn.Linear(24, 1)) for _ in range(k))

    def forward(self, x):
        s = self.gate(x)
        top = s.topk(2, dim=1)
        w = torch.zeros_like(s).scatter(1, top.indices, top.values.softmax(1))
        out = torch.cat([e(x) for e in self.experts], 1)
        balance = (s.softmax(1).mean(0) ** 2).sum() * len(self.experts)
        return {"out": (w * out).sum(1, keepdim=True), "balance": balance}


def m183(seed):
    x, y = d.friedman(seed)
    train, xt, yt = d.split(x, y.unsqueeze(1))
    net = MoE()

    def loss(out, target):
        return F.mse_loss(out["out"], target) + 0.01 * out["balance"]
    return Setup(net, train, loss, optim.Adam(net.parameters(), lr=5e-3), d.r2(xt, yt, pick=lambda o: o["out"]), steps=350)


class Hyper(nn.Module):
    """A network that makes the weights of another one from a condition."""

    def __init__(self):
        super().__init__()
        self.make = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 16 * 3 + 1))
        self.make[2].weight.data.mul_(0.7)

    def forward(self, x, c):
        w = self.make(c)
        h = torch.tanh(x * w[:, :16] + w[:, 16:32])
        return (h * w[:, 32:48]).sum(1, keepdim=True) + w[:, 48:]


def m184(seed):
    """Sine whose amplitude and phase are the condition."""
    g = d.gen(seed)
    x = torch.rand(1200, 1, generator=g) * 4 - 2
    c = torch.rand(1200, 2, generator=g) * 2 - 1
    y = (1 + 0.5 * c[:, :1]) * torch.sin(1.5 * x + 2 * c[:, 1:])
    train = [((x[i:i + 50], c[i:i + 50]), y[i:i + 50]) for i in range(0, 1000, 50)]
    net = Hyper()
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=5e-3), d.r2((x[1000:], c[1000:]), y[1000:]), steps=400)


class DEQ(nn.Module):
    """Equilibrium layer: iterate to a fixed point without gradient, then one step with it."""

    def __init__(self, n=2, c=32, k=3):
        super().__init__()
        self.inp, self.w, self.out = nn.Linear(n, c), nn.Linear(c, c, bias=False), nn.Linear(c, k)
        self.w.weight.data.mul_(0.5)

    def cell(self, z, u):
        return torch.tanh(self.w(z) + u)

    def forward(self, x):
        u = 3 * self.inp(x)
        z = torch.zeros_like(u)
        with torch.no_grad():
            for _ in range(15):
                z = self.cell(z, u)
        return self.out(self.cell(z, u))


def m185(seed):
    x, y = d.spirals(seed, turns=0.5)
    train, xt, yt = d.split(x, y)
    net = DEQ()
    return Setup(net, train, nn.CrossEntropyLoss(), optim.Adam(net.parameters(), lr=1e-2), d.acc(xt, yt), steps=350)


class ODE(nn.Module):
    """Euler steps of one learned field, with extra zero dimensions."""

    def __init__(self, c=6, steps=8):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(c + 1, 32), nn.Tanh(), nn.Linear(32, c))
        self.out, self.c, self.steps = nn.Linear(c, 2), c, steps

    def forward(self, x):
        h = F.pad(x, (0, self.c - x.size(1)))
        for i in range(self.steps):
            t = torch.full_like(h[:, :1], i / self.steps)
            h = h + self.f(torch.cat([h, t], 1)) / self.steps
        return self.out(h)


def m186(seed):
    x, y = d.rings(seed)
    train, xt, yt = d.split(x, y)
    net = ODE()
    return Setup(net, train, nn.CrossEntropyLoss(), optim.Adam(net.parameters(), lr=1e-2), d.acc(xt, yt), steps=200)


class Highway(nn.Module):
    """Carry gates with bias -2, so that layers begin near the identity."""

    def __init__(self, n=8, c=24, depth=6):
        super().__init__()
        self.inp, self.out = nn.Linear(n, c), nn.Linear(c, 4)
        self.h = nn.ModuleList(nn.Linear(c, c) for _ in range(depth))
        self.t = nn.ModuleList(nn.Linear(c, c) for _ in range(depth))
        for layer in self.t:
            nn.init.constant_(layer.bias, -2.0)

    def forward(self, x):
        x = self.inp(x)
        for h, t in zip(self.h, self.t):
            g = torch.sigmoid(t(x))
            x = g * F.relu(h(x)) + (1 - g) * x
        return self.out(x)


def m187(seed):
    x, y = d.blobs(seed, spread=1.3)
    train, xt, yt = d.split(x, y)
    net = Highway()
    return Setup(net, train, nn.CrossEntropyLoss(), optim.Adam(net.parameters(), lr=5e-3), d.acc(xt, yt), steps=200)


def m188(seed):
    """Self-normalising: SELU, LeCun init, alpha dropout, eight layers without norm."""
    x, y = d.friedman(seed)
    train, xt, yt = d.split(x, y.unsqueeze(1))
    layers, width = [], 8
    for _ in range(8):
        layers += [nn.Linear(width, 32), nn.SELU(), nn.AlphaDropout(0.01)]
        width = 32
    net = nn.Sequential(*layers, nn.Linear(32, 1))
    for m in net:
        if isinstance(m, nn.Linear):
            nn.init.kaiming_normal_(m.weight, nonlinearity="linear")
            nn.init.zeros_(m.bias)
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=1e-3), d.r2(xt, yt), steps=300)


class SoftTree(nn.Module):
    """Differentiable oblivious trees: product of sigmoids picks a leaf."""

    def __init__(self, n=8, trees=12, depth=3):
        super().__init__()
        self.split = nn.Linear(n, trees * depth)
        self.leaf = nn.Parameter(torch.randn(trees, 2 ** depth) * 0.1)
        self.shape = (trees, depth)

    def forward(self, x):
        p = torch.sigmoid(2 * self.split(x)).view(-1, *self.shape)
        w = torch.ones(len(x), self.shape[0], 1)
        for i in range(self.shape[1]):
            w = torch.cat([w * p[:, :, i:i + 1], w * (1 - p[:, :, i:i + 1])], 2)
        return (w * self.leaf).sum((1, 2))


def m189(seed):
    x, y = d.friedman(seed)
    train, xt, yt = d.split(x, y)
    net = SoftTree()
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=2e-2), d.r2(xt, yt), steps=300)


def seeded(make):
    def built(seed):
        torch.manual_seed(seed)
        return make(seed)
    return built


FAMILIES = ["ReZero", "Fixup", "SIREN", "Fourier features", "RBF network", "mixture of experts", "hypernetwork",
            "equilibrium layer", "neural ODE", "highway network", "self-normalising network", "soft decision trees"]
SOUND = [Sound(f"a-{178 + i}", family, seeded(globals()[f"m{178 + i}"])) for i, family in enumerate(FAMILIES)]
