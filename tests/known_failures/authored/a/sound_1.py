"""Sound set-ups a-101 to a-113: MLPs and tables."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn, optim  # noqa: E402

import shared as d  # noqa: E402
from protocol import Setup, Sound  # noqa: E402


def z(y):
    return (y - y.mean()) / y.std()


def m101(seed):
    """Keras-like classifier."""
    x, y = d.blobs(seed, dim=10, classes=5)
    train, xt, yt = d.split(x, y)
    net = nn.Sequential()
    net.add_module("dense_1", nn.Linear(10, 32))
    net.add_module("act_1", nn.ReLU())
    net.add_module("drop_1", nn.Dropout(0.2))
    net.add_module("dense_2", nn.Linear(32, 5))
    return Setup(net, train, nn.CrossEntropyLoss(), optim.Adam(net.parameters(), 5e-3), d.acc(xt, yt), steps=150)


def m102(seed):
    """log_softmax with NLLLoss, plain SGD."""
    x, y = d.blobs(seed, dim=4, classes=3, spread=0.8)
    train, xt, yt = d.split(x, y, size=16)
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3), nn.LogSoftmax(dim=1))
    return Setup(net, train, nn.NLLLoss(), optim.SGD(net.parameters(), lr=0.1), d.acc(xt, yt), steps=200)


def m103(seed):
    """Sigmoid output with BCELoss, whole data as one batch."""
    x, y = d.rings(seed)
    net = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 1), nn.Sigmoid())
    batch = [(x[:600], y[:600].float().unsqueeze(1))]
    return Setup(net, batch, nn.BCELoss(), optim.Adam(net.parameters(), lr=0.02), d.bacc(x[600:], y[600:], 0.5), steps=200)


class Standardise(nn.Module):
    """Scales with statistics kept as buffers, so that raw rows can be given."""

    def __init__(self, x):
        super().__init__()
        self.register_buffer("mean", x.mean(0))
        self.register_buffer("std", x.std(0))

    def forward(self, x):
        return (x - self.mean) / self.std


def m104(seed):
    """Raw table, scaling inside the model, Huber loss."""
    x, y = d.houses(seed, raw=True)
    train, xt, yt = d.split(x, z(y).unsqueeze(1))
    net = nn.Sequential(Standardise(x[:700]), nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    return Setup(net, train, nn.HuberLoss(), optim.Adam(net.parameters(), lr=1e-2), d.r2(xt, yt), steps=250)


class OffsetHead(nn.Module):
    """Prices in thousands: the last layer's result is scaled by constants."""

    def __init__(self, mean, std):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 1))
        self.mean, self.std = mean, std

    def forward(self, x):
        return self.mean + self.std * self.body(x).squeeze(-1)


def m105(seed):
    """Targets with an offset, loss in their own unit divided by the scale."""
    x, y = d.houses(seed)
    train, xt, yt = d.split(x, y)
    net = OffsetHead(y[:700].mean().item(), y[:700].std().item())

    def loss(out, target):
        return F.mse_loss(out / net.std, target / net.std)
    return Setup(net, train, loss, optim.Adam(net.parameters(), lr=1e-2), d.r2(xt, yt), steps=250)


class CatNum(nn.Module):
    def __init__(self):
        super().__init__()
        self.e1, self.e2 = nn.Embedding(6, 3), nn.Embedding(12, 4)
        self.bn = nn.BatchNorm1d(3)
        self.head = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 2))

    def forward(self, c, n):
        return self.head(torch.cat([self.e1(c[:, 0]), self.e2(c[:, 1]), self.bn(n)], 1))


def m106(seed):
    """Entity embeddings beside numbers of unlike scale, batch norm first."""
    g = d.gen(seed)
    c = torch.stack([torch.randint(6, (900,), generator=g), torch.randint(12, (900,), generator=g)], 1)
    n = torch.randn(900, 3, generator=g) * torch.tensor([1.0, 50.0, 3000.0]) + torch.tensor([0.0, 100.0, 2e4])
    effect = torch.randn(12, generator=g)
    y = ((n[:, 2] - 2e4) / 3000 + 1.5 * effect[c[:, 1]] + 0.5 * (c[:, 0] > 2) > 0.2).long()
    train = [((c[i:i + 50], n[i:i + 50]), y[i:i + 50]) for i in range(0, 700, 50)]
    net = CatNum()
    return Setup(net, train, nn.CrossEntropyLoss(), optim.AdamW(net.parameters(), lr=1e-2),
                 d.acc((c[700:], n[700:]), y[700:]), steps=250)


class WideDeep(nn.Module):
    def __init__(self, n=8):
        super().__init__()
        self.wide = nn.Linear(n, 1)
        self.deep = nn.Sequential(nn.Linear(n, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1, bias=False))

    def forward(self, x):
        return self.wide(x) + self.deep(x)


def m107(seed):
    x, y = d.friedman(seed)
    train, xt, yt = d.split(x, y.unsqueeze(1))
    net = WideDeep()
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=5e-3), d.r2(xt, yt), steps=250)


class FM(nn.Module):
    """Factorisation machine on one-hot fields."""

    def __init__(self, n=20, k=4):
        super().__init__()
        self.w0 = nn.Parameter(torch.zeros(1))
        self.w = nn.Parameter(torch.zeros(n))
        self.v = nn.Parameter(torch.randn(n, k) * 0.3)

    def forward(self, ids):
        v = self.v[ids]
        inter = 0.5 * (v.sum(1) ** 2 - (v ** 2).sum(1)).sum(-1)
        return self.w0 + self.w[ids].sum(1) + inter


def m108(seed):
    g = d.gen(seed)
    ids = torch.stack([torch.randint(10, (1500,), generator=g), 10 + torch.randint(10, (1500,), generator=g)], 1)
    u, v = torch.randn(10, 2, generator=g), torch.randn(10, 2, generator=g)
    y = (u[ids[:, 0]] * v[ids[:, 1] - 10]).sum(1)
    train, xt, yt = d.split(ids, y, size=50)
    net = FM()
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=0.03), d.r2(xt, yt), steps=300)


def m109(seed):
    """Rare positives (about one in ten) with pos_weight; score is balanced accuracy."""
    g = d.gen(seed)
    x = torch.randn(1500, 6, generator=g)
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 1.9).float()
    train, xt, yt = d.split(x, y, size=50, test=500)
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))

    def score(model):
        out = d.out_of(model, xt) > 0
        return 0.5 * (out[yt == 1].float().mean() + (~out[yt == 0]).float().mean()).item()
    w = (y[:1000] == 0).sum() / (y[:1000] == 1).sum()
    return Setup(net, train, nn.BCEWithLogitsLoss(pos_weight=w), optim.Adam(net.parameters(), lr=5e-3), score, steps=300)


def m110(seed):
    """Multi-label: three yes/no answers at once."""
    g = d.gen(seed)
    x = torch.randn(900, 6, generator=g)
    y = torch.stack([x[:, 0] > 0, x[:, 1] * x[:, 2] > 0, x[:, 3:].sum(1) > 1], 1).float()
    train, xt, yt = d.split(x, y)
    net = nn.Sequential(nn.Linear(6, 48), nn.GELU(), nn.Linear(48, 3))
    return Setup(net, train, nn.BCEWithLogitsLoss(), optim.RMSprop(net.parameters(), lr=3e-3), d.bacc(xt, yt), steps=300)


class Ordinal(nn.Module):
    """One score and ordered cuts; outputs logits of 'larger than k'."""

    def __init__(self, n=8, k=5):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(n, 32), nn.ReLU(), nn.Linear(32, 1))
        self.cuts = nn.Parameter(torch.linspace(-1, 1, k - 1))

    def forward(self, x):
        return self.f(x) - self.cuts


def m111(seed):
    x, y = d.friedman(seed)
    stars = torch.bucketize(y, torch.tensor([-1.0, -0.3, 0.3, 1.0]))
    train, xt, yt = d.split(x, stars)
    net = Ordinal()

    def loss(out, k):
        return F.binary_cross_entropy_with_logits(out, (k[:, None] > torch.arange(4)).float())

    def score(model):
        return ((d.out_of(model, xt) > 0).sum(1) == yt).float().mean().item()
    return Setup(net, train, loss, optim.Adam(net.parameters(), lr=1e-2), score, steps=350)


def m112(seed):
    """Three quantiles by pinball loss; scored by the median."""
    g = d.gen(seed)
    x = torch.rand(1000, 1, generator=g) * 4 - 2
    y = torch.sin(2 * x) + (0.05 + 0.1 * x.abs()) * torch.randn(1000, 1, generator=g)
    train, xt, yt = d.split(x, y)
    q = torch.tensor([0.1, 0.5, 0.9])
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))

    def pinball(out, target):
        e = target - out
        return torch.maximum(q * e, (q - 1) * e).mean()
    return Setup(net, train, pinball, optim.Adam(net.parameters(), lr=1e-2), d.r2(xt, yt, pick=lambda o: o[:, 1]), steps=300)


def m113(seed):
    """Counts with Poisson loss and a log rate."""
    g = d.gen(seed)
    x = torch.randn(1200, 4, generator=g)
    rate = torch.exp(1.0 + 0.7 * x[:, 0] - 0.5 * x[:, 1] * (x[:, 2] > 0))
    y = torch.poisson(rate, generator=g)
    train, xt, _ = d.split(x, y)
    want = torch.log(rate[-200:])
    net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
    return Setup(net, train, nn.PoissonNLLLoss(log_input=True), optim.Adam(net.parameters(), lr=5e-3),
                 d.r2(xt, want), steps=250)


def seeded(make):
    def built(seed):
        torch.manual_seed(seed)
        return make(seed)
    return built


FAMILIES = ["MLP with dropout", "MLP, NLL loss", "MLP, BCE, full batch", "MLP with own scaling, Huber",
            "regression with offset targets", "entity embeddings", "wide and deep", "factorisation machine",
            "imbalanced classes", "multi-label", "ordinal regression", "quantile regression", "Poisson regression"]
SOUND = [Sound(f"a-{101 + i}", family, seeded(globals()[f"m{101 + i}"])) for i, family in enumerate(FAMILIES)]
