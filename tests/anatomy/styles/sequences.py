"""Networks of tokens, patches and times, as other people write them."""

import torch
from torch import nn
from torch.nn import functional as F


class PreNormTransformer(nn.Module):
    """Pre-LN with learned positions and a causal mask."""

    def __init__(self, width=8, blocks=2):
        super().__init__()
        self.tokens = nn.Embedding(11, width)
        self.positions = nn.Parameter(torch.randn(5, width))
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "ln1": nn.LayerNorm(width),
                    "attn": nn.MultiheadAttention(width, 2, batch_first=True),
                    "ln2": nn.LayerNorm(width),
                    "mlp": nn.Sequential(
                        nn.Linear(width, 2 * width),
                        nn.GELU(),
                        nn.Linear(2 * width, width),
                        nn.Dropout(0.1),
                    ),
                }
            )
            for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 11)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        mask = torch.full((5, 5), float("-inf")).triu(1)
        for block in self.blocks:
            z = block["ln1"](x)
            x = x + block["attn"](z, z, z, attn_mask=mask)[0]
            x = x + block["mlp"](block["ln2"](x))
        return self.head(self.norm(x))


class PostNormTransformer(nn.Module):
    """Torch's own encoder and decoder layers."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2
        )
        self.decoder = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)

    def forward(self, source, target):
        return self.decoder(target, self.encoder(source))


class Mixer(nn.Module):
    def __init__(self, tokens=4, width=6):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.token_mix = nn.Sequential(
            nn.Linear(tokens, 8), nn.GELU(), nn.Linear(8, tokens)
        )
        self.channel_mix = nn.Sequential(
            nn.Linear(width, 8), nn.GELU(), nn.Linear(8, width)
        )
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = x + self.token_mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channel_mix(self.norm2(x))
        return self.head(x.mean(1))


class ParallelBlock(nn.Module):
    """Attention and MLP side by side on one norm, as in GPT-J."""

    def __init__(self, width=8):
        super().__init__()
        self.ln = nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc_in, self.fc_out = nn.Linear(width, 16), nn.Linear(16, width)

    def forward(self, x):
        h = self.ln(x)
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        scores = (q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        attended = self.proj(scores.softmax(-1) @ v)
        mlp = self.fc_out(F.gelu(self.fc_in(h)))
        return attended + mlp + x


class RecurrentByHand(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.w = nn.Linear(3, width)
        self.u = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        h = torch.zeros(len(x), 4)
        for t in range(x.shape[1]):
            h = torch.tanh(self.w(x[:, t]) + self.u(h))
        return self.head(h)


class RecurrentLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x):
        out, _ = self.lstm(x)
        h = torch.zeros(len(x), 4)
        for t in range(out.shape[1]):
            h = self.cell(out[:, t], h)
        return h


class Gated(nn.Module):
    """SwiGLU and a rotary embedding, with an RMS norm from elementary operators."""

    def __init__(self, width=4):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.q = nn.Linear(width, width)
        self.gate, self.up, self.down = (
            nn.Linear(width, 8), nn.Linear(width, 8), nn.Linear(8, width)
        )  # fmt: skip
        self.register_buffer("cos", torch.rand(5, width))
        self.register_buffer("sin", torch.rand(5, width))

    def forward(self, x):
        h = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
        q = self.q(h)
        first, second = q[..., :2], q[..., 2:]
        q = q * self.cos + torch.cat((-second, first), dim=-1) * self.sin
        return x + self.down(F.silu(self.gate(q)) * self.up(q))


class Sources(nn.Module):
    """Sums that are no residual: biases, positions, two inputs, a context, masks."""

    def __init__(self, width=4):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)
        self.context = nn.Linear(width, width)
        self.words, self.places = nn.Embedding(9, width), nn.Embedding(9, width)

    def forward(self, tokens, other, mask):
        positions = torch.cumsum(tokens.ne(1).long(), 1)
        x = self.words(tokens) + self.places(positions) + self.bias
        x = torch.relu(self.left(x)) + torch.relu(self.right(other))
        x = x * mask[..., None]
        return x + self.context(x.mean(1, keepdim=True))
