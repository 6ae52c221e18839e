"""Sound set-ups 11-20 of author c: attention variants and token mixers."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch
import torch.nn.functional as F
from torch import nn

from protocol import Setup, Sound
from shared import (Positional, accuracy, batches, chain_text, gen, keyword_tokens, lag_text, quiet,
                    r2, recall_tokens, sets, waves)


def adam(model, lr=3e-3):
    return torch.optim.Adam(model.parameters(), lr=lr)


def text_task(model, seed, steps=200, lr=2e-3, opt=None):
    x, y = keyword_tokens(seed, 1280)
    return Setup(model, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(), opt or adam(model, lr),
                 accuracy(x[1024:], y[1024:]), steps=steps)


def pictures(seed, n=640, size=8, salt=60):
    """Bars: horizontal, vertical, diagonal, or a blob, at random places, with noise."""
    g = gen(seed, salt)
    y = torch.randint(0, 4, (n,), generator=g)
    x = 0.3 * torch.randn(n, 1, size, size, generator=g)
    for i in range(n):
        k, r, c = int(y[i]), *torch.randint(1, size - 2, (2,), generator=g).tolist()
        if k == 0:
            x[i, 0, r] += 1
        elif k == 1:
            x[i, 0, :, c] += 1
        elif k == 2:
            x[i, 0] += torch.eye(size)
        else:
            x[i, 0, r:r + 3, c:c + 3] += 1
    return x, y


def picture_task(model, seed, steps=200, lr=3e-3, opt=None):
    x, y = pictures(seed)
    return Setup(model, batches(x[:512], y[:512], 64), nn.CrossEntropyLoss(), opt or adam(model, lr),
                 accuracy(x[512:], y[512:]), steps=steps)


# 11 multi-query attention
class MultiQuery(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim // heads), nn.Linear(dim, dim)
        self.heads = heads

    def forward(self, x):
        q = self.q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.kv(x).unsqueeze(1).chunk(2, -1)
        return self.o(F.scaled_dot_product_attention(q, k.expand_as(q), v.expand_as(q), is_causal=True)
                      .transpose(1, 2).flatten(2))


class MQLM(nn.Module):
    def __init__(self, vocab=20, dim=32):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), Positional(16, dim)
        self.a, self.n1, self.n2 = MultiQuery(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim))
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.pos(self.emb(ids))
        x = x + self.a(self.n1(x))
        return self.out(x + self.ff(self.n2(x)))


def s011(seed):
    text = chain_text(seed, 640, 14)
    x, y = text[:, :-1], text[:, 1:]
    model = MQLM()
    return Setup(model, batches(x[:512], y[:512], 64), lambda o, t: F.cross_entropy(o.flatten(0, 1), t.flatten()),
                 adam(model), accuracy(x[512:], y[512:]), steps=200)


# 12 linear attention
class LinearAttention(nn.Module):
    def __init__(self, vocab=8, dim=32, length=10):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), Positional(length, dim)
        self.qkv, self.norm = nn.Linear(dim, 3 * dim), nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, vocab))

    def forward(self, ids):
        x = self.pos(self.emb(ids))
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = k.transpose(1, 2) @ v
        z = 1 / (q @ k.sum(1).unsqueeze(-1) + 1e-6)
        return self.ff((x + (q @ kv) * z)[:, -1])


def s012(seed):
    x, y = recall_tokens(seed, 1280)
    model = LinearAttention()
    return Setup(model, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(), adam(model, 5e-3),
                 accuracy(x[1024:], y[1024:]), steps=400)


# 13 set transformer with induced points
class Induced(nn.Module):
    def __init__(self, dim=32, points=4):
        super().__init__()
        self.inp = nn.Linear(2, dim)
        self.points = nn.Parameter(0.3 * torch.randn(1, points, dim))
        self.a, self.b, self.c = (nn.MultiheadAttention(dim, 4, batch_first=True) for _ in range(3))
        self.seed = nn.Parameter(0.3 * torch.randn(1, 1, dim))
        self.out = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, x):
        h = F.relu(self.inp(x))
        p = self.points.expand(len(x), -1, -1)
        p = p + self.a(p, h, h, need_weights=False)[0]
        h = h + self.b(h, p, p, need_weights=False)[0]
        s = self.seed.expand(len(x), -1, -1)
        return self.out(self.c(s, h, h, need_weights=False)[0][:, 0]).squeeze(-1)


def s013(seed):
    x, y = sets(seed, 1000)
    model = Induced()
    return Setup(model, batches(x[:800], y[:800], 80), nn.SmoothL1Loss(), adam(model), r2(x[800:], y[800:]), steps=400)


# 14 perceiver: few latents read a long input
class Perceiver(nn.Module):
    def __init__(self, latents=6, dim=32):
        super().__init__()
        self.embed, self.pos = nn.Linear(3, dim), Positional(24, dim)
        self.latents = nn.Parameter(0.02 * torch.randn(latents, dim))
        self.read = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.think = nn.TransformerEncoderLayer(dim, 2, 64, 0.0, batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 4)

    def forward(self, x):
        mem = self.norm(self.pos(self.embed(x.transpose(1, 2))))
        z = self.latents.expand(len(x), -1, -1)
        for _ in range(2):                       # shared weights between the rounds
            z = z + self.read(z, mem, mem, need_weights=False)[0]
            z = self.think(z)
        return self.head(z.mean(1))


def s014(seed):
    x, y = waves(seed, 832)
    model = Perceiver()
    return Setup(model, batches(x[:640], y[:640], 64), nn.CrossEntropyLoss(), adam(model),
                 accuracy(x[640:], y[640:]), steps=300)


# 15 ViT
class ViT(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.patch = nn.Conv2d(1, dim, 2, 2)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, dim)), nn.Parameter(0.02 * torch.randn(1, 17, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, 0.1, "gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, 4)
        nn.init.zeros_(self.head.weight)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.head(self.body(x)[:, 0])


def s015(seed):
    model = ViT()
    return picture_task(model, seed, 250, opt=torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05))


# 16 MLP-Mixer
class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.ch = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ch(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.stem = nn.Conv2d(1, dim, 2, 2)
        self.body = nn.Sequential(MixerBlock(16, dim), MixerBlock(16, dim), nn.LayerNorm(dim))
        self.head = nn.Linear(dim, 4)

    def forward(self, x):
        return self.head(self.body(self.stem(x).flatten(2).transpose(1, 2)).mean(1))


def s016(seed):
    return picture_task(Mixer(), seed, 200)


# 17 FNet
class FNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb, self.pos = nn.Embedding(60, dim), Positional(12, dim)
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(4)])
        self.ffs = nn.ModuleList([nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim)) for _ in range(2)])
        self.out = nn.Linear(dim, 4)

    def forward(self, ids):
        x = self.pos(self.emb(ids))
        for i in range(2):
            x = self.norms[2 * i](x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=1).real / 10)
            x = self.norms[2 * i + 1](x + self.ffs[i](x))
        return self.out(x.amax(1))


def s017(seed):
    return text_task(FNet(), seed, 250)


# 18 gMLP with a spatial gate that starts as the identity
class SpatialGate(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        self.norm, self.proj = nn.LayerNorm(dim), nn.Linear(length, length)
        nn.init.normal_(self.proj.weight, std=1e-4)
        nn.init.ones_(self.proj.bias)

    def forward(self, x):
        u, v = x.chunk(2, -1)
        return u * self.proj(self.norm(v).transpose(1, 2)).transpose(1, 2)


class GMLP(nn.Module):
    def __init__(self, dim=24, length=10, vocab=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 64), nn.GELU(),
                                                   SpatialGate(32, length), nn.Linear(32, dim)) for _ in range(2)])
        self.fc = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for b in self.blocks:
            x = x + b(x)
        return self.fc(x[:, -1])


def s018(seed):
    x, y = recall_tokens(seed, 1280)
    model = GMLP()
    return Setup(model, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(), adam(model, 5e-3),
                 accuracy(x[1024:], y[1024:]), steps=300)


# 19 ReZero: every residual branch starts at exactly zero
class ReZero(nn.Module):
    def __init__(self, dim=32, layers=4):
        super().__init__()
        self.emb, self.pos = nn.Embedding(60, dim), Positional(12, dim)
        self.att = nn.ModuleList([nn.MultiheadAttention(dim, 4, batch_first=True) for _ in range(layers)])
        self.ff = nn.ModuleList([nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, dim)) for _ in range(layers)])
        self.alpha = nn.Parameter(torch.zeros(layers, 2))
        self.head = nn.Linear(dim, 4)

    def forward(self, ids):
        x = self.pos(self.emb(ids))
        for i, (a, f) in enumerate(zip(self.att, self.ff)):
            x = x + self.alpha[i, 0] * a(x, x, x, need_weights=False)[0]
            x = x + self.alpha[i, 1] * f(x)
        return self.head(x.mean(1))


def s019(seed):
    return text_task(ReZero(), seed, 200)


# 20 parallel attention and MLP with LayerScale, deep and narrow
class ParallelBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.att = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
        self.scale = nn.Parameter(1e-2 * torch.ones(dim))

    def forward(self, x):
        h = self.norm(x)
        return x + self.scale * (self.att(h, h, h, need_weights=False)[0] + self.mlp(h))


class ParallelNet(nn.Module):
    def __init__(self, dim=24, depth=5, vocab=8):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), Positional(10, dim)
        self.body = nn.Sequential(*[ParallelBlock(dim) for _ in range(depth)], nn.LayerNorm(dim))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.body(self.pos(self.emb(ids)))[:, -1])


def s020(seed):
    x, y = recall_tokens(seed, 1280)
    model = ParallelNet()
    return Setup(model, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(), adam(model, 4e-3),
                 accuracy(x[1024:], y[1024:]), steps=300)


SOUND = [
    Sound("c-079", "multi-query attention language model", s011, "arXiv:1911.02150"),
    Sound("c-086", "linear attention", s012, "arXiv:2006.16236"),
    Sound("c-041", "set transformer with induced points", s013, "arXiv:1810.00825"),
    Sound("c-017", "Perceiver with shared rounds", s014, "arXiv:2103.03206"),
    Sound("c-126", "vision transformer, zero-initialised head", s015, "arXiv:2010.11929"),
    Sound("c-105", "MLP-Mixer", s016, "arXiv:2105.01601"),
    Sound("c-003", "FNet", s017, "arXiv:2105.03824"),
    Sound("c-023", "gMLP with spatial gating", s018, "arXiv:2105.08050"),
    Sound("c-066", "ReZero transformer", s019, "arXiv:2003.04887"),
    Sound("c-076", "parallel block with LayerScale", s020, "arXiv:2103.17239"),
]
