"""Data makers and small helpers of author c."""

import contextlib
import math

import torch
from torch import nn


def gen(seed, salt=0):
    return torch.Generator().manual_seed(1000 * seed + salt + 17)


@contextlib.contextmanager
def quiet(model):
    """Evaluation mode without gradients; every module gets its own mode back."""
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield model
    finally:
        for m, mode in modes:
            m.training = mode


def batches(x, y, size):
    """Cut (x, y) into a list of mini-batches; x may be a tuple."""
    n = len(y)
    out = []
    for i in range(0, n - size + 1, size):
        piece = tuple(t[i:i + size] for t in x) if isinstance(x, tuple) else x[i:i + size]
        out.append((piece, y[i:i + size]))
    return out


def dict_batches(size, **columns):
    n = len(next(iter(columns.values())))
    return [{k: v[i:i + size] for k, v in columns.items()} for i in range(0, n - size + 1, size)]


def accuracy(x, y, pick=lambda out: out):
    def score(model):
        with quiet(model):
            out = pick(model(*x) if isinstance(x, tuple) else model(x))
            return (out.argmax(-1) == y).float().mean().item()
    return score


def r2(x, y, pick=lambda out: out):
    def score(model):
        with quiet(model):
            out = pick(model(*x) if isinstance(x, tuple) else model(x)).reshape(y.shape)
            value = 1 - ((out - y) ** 2).mean() / y.var()
            return max(-9.0, float(value)) if torch.isfinite(value) else -9.0
    return score


def keyword_tokens(seed, n=1024, length=12, vocab=60, classes=4, salt=1):
    """Class k: one of the keywords of k stands somewhere among filler words."""
    g = gen(seed, salt)
    first = 4
    x = torch.randint(first + 3 * classes, vocab, (n, length), generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    for _ in range(2):
        word = first + 3 * y + torch.randint(0, 3, (n,), generator=g)
        place = torch.randint(0, length, (n,), generator=g)
        x[torch.arange(n), place] = word
    return x, y


def recall_tokens(seed, n=1024, length=10, vocab=8, salt=2):
    """The class is the first token of the sequence."""
    g = gen(seed, salt)
    x = torch.randint(0, vocab, (n, length), generator=g)
    return x, x[:, 0].clone()


def chain_text(seed, n=512, length=16, vocab=20, noise=0.05, salt=3):
    """Text of a noisy Markov chain: each word has one usual successor."""
    g0 = torch.Generator().manual_seed(5 + salt)
    succ = torch.randperm(vocab, generator=g0)
    g = gen(seed, salt)
    rows = [torch.randint(0, vocab, (n,), generator=g)]
    for _ in range(length - 1):
        nxt = succ[rows[-1]]
        odd = torch.rand(n, generator=g) < noise
        rows.append(torch.where(odd, torch.randint(0, vocab, (n,), generator=g), nxt))
    return torch.stack(rows, 1)


def lag_text(seed, n=512, length=16, vocab=5, salt=4):
    """x[t] = x[t-1] + x[t-2] mod vocab."""
    g = gen(seed, salt)
    rows = [torch.randint(0, vocab, (n,), generator=g) for _ in range(2)]
    for _ in range(length - 2):
        rows.append((rows[-1] + rows[-2]) % vocab)
    return torch.stack(rows, 1)


def sine_windows(seed, n=768, length=20, ahead=1, salt=5, noise=0.05):
    """Windows of sines with random phase and frequency; target: the next value(s)."""
    g = gen(seed, salt)
    freq = 0.2 + 0.5 * torch.rand(n, 1, generator=g)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    t = torch.arange(length + ahead).float()[None]
    s = torch.sin(freq * t + phase)
    x = s[:, :length] + noise * torch.randn(n, length, generator=g)
    return x[..., None], s[:, length:]


def waves(seed, n=640, length=24, channels=3, classes=4, salt=6):
    """Several channels; the class is the frequency of the wave in them."""
    g = gen(seed, salt)
    y = torch.randint(0, classes, (n,), generator=g)
    t = torch.arange(length).float()
    w = (0.25 + 0.35 * y.float())[:, None, None]
    ph = 6.28 * torch.rand(n, channels, 1, generator=g)
    x = torch.sin(w * t + ph) + 0.2 * torch.randn(n, channels, length, generator=g)
    return x, y


def adding(seed, n=1024, length=12, salt=7):
    """Two marked positions; the target is the sum of their values."""
    g = gen(seed, salt)
    v = torch.rand(n, length, generator=g) * 2 - 1
    m = torch.zeros(n, length)
    a = torch.randint(0, length // 2, (n,), generator=g)
    b = torch.randint(length // 2, length, (n,), generator=g)
    m[torch.arange(n), a] = 1
    m[torch.arange(n), b] = 1
    return torch.stack([v, m], -1), (v * m).sum(1)


def sbm(seed, n=90, classes=3, dim=8, p_in=0.25, p_out=0.03, strength=0.7, salt=8):
    """One graph with communities; weak node features; half of the nodes for training."""
    g = gen(seed, salt)
    y = torch.arange(n) % classes
    same = (y[:, None] == y[None]).float()
    p = same * p_in + (1 - same) * p_out
    a = (torch.rand(n, n, generator=g) < p).float().triu(1)
    a = a + a.T
    centre = torch.randn(classes, dim, generator=g)
    x = strength * centre[y] + torch.randn(n, dim, generator=g)
    train = torch.rand(n, generator=g) < 0.5
    return x, a, y, train


def norm_adj(a):
    a = a + torch.eye(a.shape[-1])
    d = a.sum(-1).clamp(min=1).rsqrt()
    return d[..., :, None] * a * d[..., None, :]


def small_graphs(seed, n=512, nodes=10, salt=9):
    """Graph classes: ring, star, two cliques, random tree; nodes in random order."""
    g = gen(seed, salt)
    y = torch.randint(0, 4, (n,), generator=g)
    adj = torch.zeros(n, nodes, nodes)
    for i in range(n):
        k = int(y[i])
        a = torch.zeros(nodes, nodes)
        if k == 0:
            idx = torch.arange(nodes)
            a[idx, (idx + 1) % nodes] = 1
        elif k == 1:
            a[0, 1:] = 1
        elif k == 2:
            h = nodes // 2
            a[:h, :h] = 1
            a[h:, h:] = 1
            a[0, h] = 1
        else:
            for j in range(1, nodes):
                a[j, int(torch.randint(max(0, j - 3), j, (1,), generator=g))] = 1
        a = ((a + a.T) > 0).float()
        a.fill_diagonal_(0)
        perm = torch.randperm(nodes, generator=g)
        adj[i] = a[perm][:, perm]
    feats = torch.cat([torch.ones(n, nodes, 1), 0.3 * torch.randn(n, nodes, 3, generator=g)], -1)
    return feats, adj, y


def two_views(seed, n=512, latent=4, dim=16, noise=0.15, salt=10):
    """Two noisy nonlinear views of the same latent point."""
    g0 = torch.Generator().manual_seed(77)
    wa, wb = (torch.randn(latent, dim, generator=g0) for _ in range(2))
    g = gen(seed, salt)
    z = torch.randn(n, latent, generator=g)
    a = torch.tanh(z @ wa / 1.5) + noise * torch.randn(n, dim, generator=g)
    b = torch.tanh(z @ wb / 1.5) + noise * torch.randn(n, dim, generator=g)
    return a, b


def bandit(seed, n=1024, dim=6, actions=4, salt=11):
    """Logged contextual bandit: states, uniform actions, noisy reward; best action."""
    g0 = torch.Generator().manual_seed(78)
    w = torch.randn(dim, actions, generator=g0)
    g = gen(seed, salt)
    s = torch.randn(n, dim, generator=g)
    best = (s @ w).argmax(1)
    a = torch.randint(0, actions, (n,), generator=g)
    r = (a == best).float() + 0.1 * torch.randn(n, generator=g)
    return s, a, r, best


def sets(seed, n=768, size=8, salt=12):
    """Sets of points in the plane; target: distance from mean point to farthest one."""
    g = gen(seed, salt)
    x = torch.randn(n, size, 2, generator=g) * (0.3 + 1.5 * torch.rand(n, 1, 1, generator=g))
    y = (x - x.mean(1, keepdim=True)).norm(dim=-1).max(1).values
    return x, y


def blobs(seed, n=768, dim=10, classes=4, spread=0.8, salt=13):
    g = gen(seed, salt)
    g0 = torch.Generator().manual_seed(79)
    c = 2.0 * torch.randn(2 * classes, dim, generator=g0) / math.sqrt(dim) * 1.5
    k = torch.randint(0, 2 * classes, (n,), generator=g)
    return c[k] + spread * torch.randn(n, dim, generator=g), k % classes


def table(seed, n=768, dim=6, salt=14):
    """Smooth regression on standardised columns."""
    g = gen(seed, salt)
    x = torch.randn(n, dim, generator=g)
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3]
    return x, (y - y.mean()) / y.std()


class Positional(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        self.table = nn.Parameter(0.1 * torch.randn(length, dim))

    def forward(self, x):
        return x + self.table[: x.shape[1]]
