"""Data makers and scores of author a."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def gen(seed):
    return torch.Generator().manual_seed(1000 + seed)


def split(x, y, size=32, test=200):
    """Mini-batches of the first part and the held-out rest."""
    n = len(x) - test
    made = [(x[i:i + size], y[i:i + size]) for i in range(0, n - size + 1, size)]
    return made, x[n:], y[n:]


def out_of(model, x):
    mode = model.training
    model.eval()
    with torch.no_grad():
        out = model(*x) if isinstance(x, tuple) else model(x)
    model.train(mode)
    return out


def acc(x, y, pick=lambda o: o):
    """Held-out share of right classes by the largest output."""
    def score(model):
        out = pick(out_of(model, x))
        return (out.argmax(-1) == y).float().mean().item()
    return score


def bacc(x, y, cut=0.0, pick=lambda o: o):
    """Held-out share of right yes/no answers, one output per row."""
    def score(model):
        out = pick(out_of(model, x)).reshape(len(y), -1)
        return ((out > cut).float() == y.reshape(len(y), -1)).float().mean().item()
    return score


def r2(x, y, pick=lambda o: o, scale=1.0, shift=0.0):
    """Held-out R squared, not below -3."""
    def score(model):
        out = (pick(out_of(model, x)).reshape(y.shape) * scale + shift)
        if not torch.isfinite(out).all():
            return -3.0
        return max(-3.0, 1 - ((out - y) ** 2).mean().item() / ((y - y.mean(0)) ** 2).mean().item())
    return score


def blobs(seed, n=800, dim=8, classes=4, spread=1.0):
    g = gen(seed)
    centres = torch.randn(classes, dim, generator=g) * 2
    y = torch.randint(classes, (n,), generator=g)
    return centres[y] + spread * torch.randn(n, dim, generator=g), y


def spirals(seed, n=800, classes=3, noise=0.05, turns=0.75):
    g = gen(seed)
    y = torch.randint(classes, (n,), generator=g)
    r = torch.rand(n, generator=g) * 0.9 + 0.1
    a = r * turns * 2 * math.pi + y * 2 * math.pi / classes
    x = torch.stack([r * a.cos(), r * a.sin()], 1) + noise * torch.randn(n, 2, generator=g)
    return x * 2, y


def rings(seed, n=800, noise=0.1):
    g = gen(seed)
    y = torch.randint(2, (n,), generator=g)
    r = 0.7 + y + noise * torch.randn(n, generator=g)
    a = torch.rand(n, generator=g) * 2 * math.pi
    return torch.stack([r * a.cos(), r * a.sin()], 1), y


def houses(seed, n=900, raw=False):
    """Area, rooms, age, distance, year, tax; price in thousands. Raw or standardised columns."""
    g = gen(seed)
    u = torch.rand(n, 6, generator=g)
    area, rooms, age = 40 + 260 * u[:, 0], 1 + (u[:, 1] * 7).floor(), 80 * u[:, 2]
    dist, year, tax = 30 * u[:, 3], 1990 + (u[:, 4] * 30).floor(), 2e4 * u[:, 5]
    price = (0.9 * area + 14 * rooms * (1 - age / 160) - 4 * dist + 60 * (dist < 8)
             + 2 * (year - 2005) + 6 * torch.randn(n, generator=g) + 60)
    x = torch.stack([area, rooms, age, dist, year, tax], 1)
    if not raw:
        x = (x - x.mean(0)) / x.std(0)
    return x, price


def friedman(seed, n=900, dim=8):
    g = gen(seed)
    x = torch.rand(n, dim, generator=g)
    y = (10 * torch.sin(math.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4])
    return (x - 0.5) * 3.4, (y - y.mean()) / y.std()


def stripes(seed, n=700, size=12, classes=4, channels=1, noise=0.3):
    """Images in 0..1: stripes across, down, along a diagonal, or a chequer; phase at random."""
    g = gen(seed)
    y = torch.randint(classes, (n,), generator=g)
    i, j = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    phase = torch.randint(4, (n,), generator=g).view(-1, 1, 1)
    across, down = ((i + phase) // 2) % 2, ((j + phase) // 2) % 2
    slant = ((i + j + phase) // 2) % 2
    kinds = torch.stack([across, down, slant, (across + down) % 2], 1)
    x = kinds[torch.arange(n), y].float().unsqueeze(1).repeat(1, channels, 1, 1)
    x = x + noise * torch.randn(n, channels, size, size, generator=g)
    return x.clamp(-0.5, 1.5) * 0.5 + 0.25, y


def shapes(seed, n=700, size=14, channels=1, noise=0.15):
    """A square, cross, ring or disc somewhere in the image; also the mask."""
    g = gen(seed)
    y = torch.randint(4, (n,), generator=g)
    c = 4 + torch.randint(size - 8, (n, 2), generator=g)
    i, j = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    di, dj = i - c[:, 0].view(-1, 1, 1), j - c[:, 1].view(-1, 1, 1)
    r = (di ** 2 + dj ** 2).float().sqrt()
    box = (di.abs() <= 3) & (dj.abs() <= 3)
    kinds = torch.stack([box & ((di.abs() == 3) | (dj.abs() == 3)), box & ((di == 0) | (dj == 0)),
                         (r < 3.6) & (r > 2.3), r < 2.9], 1)
    mask = kinds[torch.arange(n), y].float()
    x = mask.unsqueeze(1).repeat(1, channels, 1, 1) + noise * torch.randn(n, channels, size, size, generator=g)
    return x, y, mask


def waves(seed, n=700, length=20, ahead=1):
    """Windows of a mixture of two sines with random phase and pace, and the next value(s)."""
    g = gen(seed)
    t = torch.arange(length + ahead).float()
    p = torch.rand(n, 4, generator=g)
    s = (torch.sin((0.25 + 0.35 * p[:, :1]) * t + 6.28 * p[:, 1:2])
         + 0.5 * torch.sin((0.7 + 0.3 * p[:, 2:3]) * t + 6.28 * p[:, 3:4]))
    s = s + 0.02 * torch.randn(s.shape, generator=g)
    return s[:, :length, None], s[:, length:]


def docs(seed, n=800, vocab=40, length=12, classes=3):
    """Token rows; each class has its own few words among common ones."""
    g = gen(seed)
    y = torch.randint(classes, (n,), generator=g)
    x = torch.randint(1, vocab, (n, length), generator=g)
    own = 1 + y[:, None] * 4 + torch.randint(4, (n, 3), generator=g)
    place = torch.rand(n, length, generator=g).argsort(1)[:, :3]
    return x.scatter(1, place, own), y


def onehot(y, k):
    return F.one_hot(y, k).float()


def walks(seed, n=700, v=10, length=10):
    """Rows that repeat a random triple; the next token is known after three."""
    g = gen(seed)
    t = torch.randint(v, (n, 3), generator=g).repeat(1, length // 3 + 1)[:, :length]
    return t[:, :-1], t[:, 1:]


def lm_loss(logits, y):
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def lm_score(xt, yt, start=2):
    def score(model):
        return (out_of(model, xt).argmax(-1) == yt)[:, start:].float().mean().item()
    return score


class Attn(nn.Module):
    def __init__(self, c, heads=2, causal=False):
        super().__init__()
        self.h, self.causal = heads, causal
        self.qkv, self.o = nn.Linear(c, 3 * c), nn.Linear(c, c)

    def bias(self, t):
        return None

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.h, c // self.h).permute(2, 0, 3, 1, 4)
        s = q @ k.transpose(-1, -2) / math.sqrt(c // self.h)
        if (b := self.bias(t)) is not None:
            s = s + b
        if self.causal:
            s = s.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    """Pre-norm."""

    def __init__(self, c, attn):
        super().__init__()
        self.n1, self.n2, self.attn = nn.LayerNorm(c), nn.LayerNorm(c), attn
        self.mlp = nn.Sequential(nn.Linear(c, 2 * c), nn.GELU(), nn.Linear(2 * c, c))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))
