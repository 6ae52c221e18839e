"""Sound set-ups a-153 to a-165: attention and token mixing."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import shared as d  # noqa: E402
from protocol import Setup, Sound  # noqa: E402
from shared import Attn, Block, lm_loss, lm_score, walks  # noqa: E402

AdamW = torch.optim.AdamW


class MiniGPT(nn.Module):
    """Causal, learned positions, tied output, small normal init."""

    def __init__(self, v=10, c=32, t=16):
        super().__init__()
        self.tok, self.pos = nn.Embedding(v, c), nn.Embedding(t, c)
        self.blocks = nn.Sequential(Block(c, Attn(c, causal=True)), Block(c, Attn(c, causal=True)))
        self.norm = nn.LayerNorm(c)
        self.head = nn.Linear(c, v, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.08)
        self.head.weight = self.tok.weight

    def forward(self, x):
        h = self.tok(x) + self.pos(torch.arange(x.size(1)))
        return self.head(self.norm(self.blocks(h)))


def m153(seed):
    x, y = walks(seed)
    train, xt, yt = d.split(x, y)
    net = MiniGPT()
    return Setup(net, train, lm_loss, AdamW(net.parameters(), lr=4e-3), lm_score(xt, yt), steps=300)


class Encoder(nn.Module):
    """nn.TransformerEncoder in its default post-norm form with a class token."""

    def __init__(self, norm_first=False):
        super().__init__()
        layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.1, batch_first=True, norm_first=norm_first)
        self.emb = nn.Embedding(40, 24)
        self.cls = nn.Parameter(torch.zeros(1, 1, 24))
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        e = torch.cat([self.cls.expand(len(x), -1, -1), self.emb(x)], 1)
        return self.fc(self.enc(e)[:, 0])


def m154(seed):
    x, y = d.docs(seed)
    train, xt, yt = d.split(x, y)
    net = Encoder()
    return Setup(net, train, nn.CrossEntropyLoss(), AdamW(net.parameters(), lr=2e-3), d.acc(xt, yt), steps=250)


class Alibi(Attn):
    def bias(self, t):
        i = torch.arange(t)
        slope = 2.0 ** -torch.arange(1, self.h + 1).float()
        return -slope[:, None, None] * (i[:, None] - i).abs()


class AlibiLM(nn.Module):
    def __init__(self, v=10, c=32):
        super().__init__()
        self.emb = nn.Embedding(v, c)
        self.body = nn.Sequential(Block(c, Alibi(c, 4, True)), Block(c, Alibi(c, 4, True)), nn.LayerNorm(c), nn.Linear(c, v))

    def forward(self, x):
        return self.body(self.emb(x))


def m155(seed):
    """No position embedding at all, only a bias that falls with distance."""
    g = d.gen(seed)
    s, k = torch.randint(10, (700, 1), generator=g), torch.randint(1, 5, (700, 1), generator=g)
    seq = (s + k * torch.arange(10)) % 10
    train, xt, yt = d.split(seq[:, :-1], seq[:, 1:])
    net = AlibiLM()
    return Setup(net, train, lm_loss, AdamW(net.parameters(), lr=3e-3), lm_score(xt, yt), steps=250)


class RelBias(Attn):
    def __init__(self, c, heads=2, span=12):
        super().__init__(c, heads)
        self.table, self.span = nn.Parameter(torch.zeros(heads, 2 * span)), span

    def bias(self, t):
        i = torch.arange(t)
        return self.table[:, i[:, None] - i + self.span]


class RelTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Embedding(10, 24), Block(24, RelBias(24)), Block(24, RelBias(24)), nn.LayerNorm(24), nn.Linear(24, 2))

    def forward(self, x):
        return self.net(x)


def m156(seed):
    """Is the token to the left larger? Relative position bias begun at zero."""
    g = d.gen(seed)
    x = torch.randint(10, (700, 10), generator=g)
    y = torch.zeros_like(x)
    y[:, 1:] = (x[:, :-1] > x[:, 1:]).long()
    train, xt, yt = d.split(x, y)
    net = RelTagger()
    return Setup(net, train, lm_loss, AdamW(net.parameters(), lr=4e-3), lm_score(xt, yt, 1), steps=350)


class Translate(nn.Module):
    """nn.Transformer as encoder-decoder with target mask; sorts a short row."""

    def __init__(self, v=8, c=32):
        super().__init__()
        self.src, self.tgt = nn.Embedding(v, c), nn.Embedding(v + 1, c)
        self.pos = nn.Parameter(torch.randn(1, 5, c) * 0.3)
        self.tr = nn.Transformer(c, 2, 1, 1, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.out = nn.Linear(c, v)

    def forward(self, s, t):
        mask = nn.Transformer.generate_square_subsequent_mask(t.size(1))
        return self.out(self.tr(self.src(s) + self.pos, self.tgt(t) + self.pos, tgt_mask=mask))


def m157(seed):
    g = d.gen(seed)
    s = torch.randint(8, (900, 5), generator=g)
    y = s.sort(1).values
    t = torch.cat([torch.full((900, 1), 8), y[:, :-1]], 1)
    train = [((s[i:i + 50], t[i:i + 50]), y[i:i + 50]) for i in range(0, 700, 50)]
    net = Translate()
    return Setup(net, train, lm_loss, AdamW(net.parameters(), lr=3e-3), lm_score((s[700:], t[700:]), y[700:], 0), steps=250)


class ViT(nn.Module):
    def __init__(self, c=32, patch=4, size=12):
        super().__init__()
        self.patch = nn.Conv2d(1, c, patch, patch)
        n = (size // patch) ** 2
        self.cls = nn.Parameter(torch.zeros(1, 1, c))
        self.pos = nn.Parameter(torch.randn(1, n + 1, c) * 0.02)
        self.blocks = nn.Sequential(Block(c, Attn(c, 4)), Block(c, Attn(c, 4)))
        self.norm, self.head = nn.LayerNorm(c), nn.Linear(c, 4)

    def forward(self, x):
        p = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.cls.expand(len(x), -1, -1), p], 1) + self.pos
        return self.head(self.norm(self.blocks(h)[:, 0]))


def m158(seed):
    x, y = d.stripes(seed)
    train, xt, yt = d.split((x - 0.5) * 4, y)
    net = ViT()
    return Setup(net, train, nn.CrossEntropyLoss(), AdamW(net.parameters(), lr=2e-3, weight_decay=0.05), d.acc(xt, yt), steps=250)


class MixBlock(nn.Module):
    def __init__(self, n, c):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.tok = nn.Sequential(nn.Linear(n, 16), nn.GELU(), nn.Linear(16, n))
        self.chan = nn.Sequential(nn.Linear(c, 2 * c), nn.GELU(), nn.Linear(2 * c, c))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chan(self.n2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(1, 24, 3, 3)
        self.mix = nn.Sequential(MixBlock(16, 24), MixBlock(16, 24), nn.LayerNorm(24))
        self.head = nn.Linear(24, 4)

    def forward(self, x):
        return self.head(self.mix(self.patch(x).flatten(2).transpose(1, 2)).mean(1))


def m159(seed):
    x, y = d.stripes(seed)
    train, xt, yt = d.split((x - 0.5) * 4, y)
    net = Mixer()
    return Setup(net, train, nn.CrossEntropyLoss(), AdamW(net.parameters(), lr=3e-3), d.acc(xt, yt), steps=250)


class FTT(nn.Module):
    """Feature tokenizer transformer for a table: each column is a token."""

    def __init__(self, n=8, c=16):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(n, c) * 0.3), nn.Parameter(torch.randn(n, c) * 0.3)
        self.cls = nn.Parameter(torch.randn(1, 1, c) * 0.1)
        self.blocks = nn.Sequential(Block(c, Attn(c)), Block(c, Attn(c)))
        self.head = nn.Sequential(nn.LayerNorm(c), nn.ReLU(), nn.Linear(c, 1))

    def forward(self, x):
        t = x[..., None] * self.w + self.b
        t = torch.cat([self.cls.expand(len(x), -1, -1), t], 1)
        return self.head(self.blocks(t)[:, 0]).squeeze(-1)


def m160(seed):
    x, y = d.friedman(seed)
    train, xt, yt = d.split(x, y)
    net = FTT()
    return Setup(net, train, nn.MSELoss(), AdamW(net.parameters(), lr=5e-3), d.r2(xt, yt), steps=300)


class CrossPool(nn.Module):
    """nn.MultiheadAttention with a learned query and a key padding mask."""

    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(3, 16)
        self.q = nn.Parameter(torch.randn(1, 1, 16))
        self.mha = nn.MultiheadAttention(16, 2, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, x, pad):
        h = F.relu(self.inp(x))
        o, _ = self.mha(self.q.expand(len(x), -1, -1), h, h, key_padding_mask=pad, need_weights=False)
        return self.out(o.squeeze(1)).squeeze(1)


def m161(seed):
    g = d.gen(seed)
    x = torch.randn(900, 8, 3, generator=g)
    where = torch.randint(4, (900,), generator=g)
    x[..., 2] = d.onehot(where, 8) * 2
    pad = torch.arange(8) >= torch.randint(4, 9, (900, 1), generator=g)
    y = x[torch.arange(900), where, 0]
    train = [((x[i:i + 50], pad[i:i + 50]), y[i:i + 50]) for i in range(0, 700, 50)]
    net = CrossPool()
    return Setup(net, train, nn.MSELoss(), AdamW(net.parameters(), lr=5e-3), d.r2((x[700:], pad[700:]), y[700:]), steps=400)


class ALBERT(nn.Module):
    """One block used three times on purpose (shared weights), factorised embedding."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Sequential(nn.Embedding(40, 8), nn.Linear(8, 24))
        self.block = Block(24, Attn(24))
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        h = self.emb(x)
        for _ in range(3):
            h = self.block(h)
        return self.fc(h.mean(1))


def m162(seed):
    x, y = d.docs(seed)
    train, xt, yt = d.split(x, y)
    net = ALBERT()
    return Setup(net, train, nn.CrossEntropyLoss(), AdamW(net.parameters(), lr=3e-3), d.acc(xt, yt), steps=250)


class SwiGLU(nn.Module):
    def __init__(self, c, h):
        super().__init__()
        self.a, self.b, self.o = (nn.Linear(c, h, bias=False), nn.Linear(c, h, bias=False), nn.Linear(h, c, bias=False))

    def forward(self, x):
        return self.o(F.silu(self.a(x)) * self.b(x))


class LlamaLike(nn.Module):
    """RMS norm, rotary positions, gated MLP, no biases."""

    def __init__(self, v=10, c=32):
        super().__init__()
        self.emb = nn.Embedding(v, c)
        self.n1, self.n2, self.n3 = nn.RMSNorm(c), nn.RMSNorm(c), nn.RMSNorm(c)
        self.q, self.k, self.v, self.o = (nn.Linear(c, c, bias=False) for _ in range(4))
        self.mlp, self.head = SwiGLU(c, 64), nn.Linear(c, v, bias=False)

    def rot(self, x):
        half = x.size(-1) // 2
        ang = torch.arange(x.size(1))[:, None] * 10.0 ** (-torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * ang.cos() - b * ang.sin(), a * ang.sin() + b * ang.cos()], -1)

    def forward(self, x):
        h = self.emb(x)
        n = self.n1(h)
        h = h + self.o(F.scaled_dot_product_attention(self.rot(self.q(n)), self.rot(self.k(n)), self.v(n), is_causal=True))
        return self.head(self.n3(h + self.mlp(self.n2(h))))


def m163(seed):
    x, y = walks(seed)
    train, xt, yt = d.split(x, y)
    net = LlamaLike()
    return Setup(net, train, lm_loss, AdamW(net.parameters(), lr=5e-3, betas=(0.9, 0.95), weight_decay=0.1),
                 lm_score(xt, yt), steps=300)


class MLM(nn.Module):
    """Masked-token model; loss only on the masked places."""

    def __init__(self, v=6, c=32):
        super().__init__()
        self.emb, self.pos = nn.Embedding(v + 1, c), nn.Parameter(torch.randn(1, 8, c))
        self.blocks = nn.Sequential(Block(c, Attn(c)), Block(c, Attn(c)))
        self.out = nn.Linear(c, v)

    def forward(self, x):
        return self.out(self.blocks(self.emb(x) + self.pos))


def m164(seed):
    """The row is its own mirror image; one of eight tokens is masked."""
    g = d.gen(seed)
    half = torch.randint(6, (3000, 4), generator=g)
    full = torch.cat([half, half.flip(1)], 1)
    hide = torch.randint(8, (3000, 1), generator=g)
    x = full.scatter(1, hide, 6)
    y = torch.full_like(full, -100).scatter(1, hide, full.gather(1, hide))
    train, xt, yt = d.split(x, y, size=50)

    def score(model):
        return (d.out_of(model, xt).argmax(-1) == yt)[yt >= 0].float().mean().item()
    net = MLM()
    return Setup(net, train, lm_loss, AdamW(net.parameters(), lr=4e-3), score, steps=350)


class LinearAttn(Attn):
    """Kernel attention with elu + 1, no softmax."""

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.h, c // self.h).permute(2, 0, 3, 1, 4)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = k.transpose(-1, -2) @ v
        out = (q @ kv) / (q @ k.sum(-2, keepdim=True).transpose(-1, -2))
        return self.o(out.transpose(1, 2).reshape(n, t, c))


class SetStats(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), Block(24, LinearAttn(24)), Block(24, LinearAttn(24)))
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.net(x).mean(1))


def m165(seed):
    g = d.gen(seed)
    x = torch.randn(900, 10, 2, generator=g) * (0.3 + torch.rand(900, 1, 2, generator=g))
    y = x.std(1)[:, :1] * 3 - 2
    train, xt, yt = d.split(x, y)
    net = SetStats()
    return Setup(net, train, nn.MSELoss(), AdamW(net.parameters(), lr=3e-3), d.r2(xt, yt), steps=250)


def seeded(make):
    def built(seed):
        torch.manual_seed(seed)
        return make(seed)
    return built


FAMILIES = ["GPT-like, tied", "post-norm encoder with class token", "ALiBi language model", "relative bias tagger",
            "encoder-decoder transformer", "ViT", "MLP-Mixer", "FT-Transformer", "cross-attention pooling with padding mask",
            "shared-weight transformer", "rotary, RMS norm, SwiGLU", "masked language model", "linear attention"]
SOUND = [Sound(f"a-{153 + i}", family, seeded(globals()[f"m{153 + i}"])) for i, family in enumerate(FAMILIES)]
