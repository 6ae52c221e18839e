"""A GPT-2 in plain torch, of any size that a config of its usual names describes.

Pre-norm blocks of causal attention and a perceptron of four times the width, learnt
positions, and a head that shares its weights with the embedding. Attention is written
out in products and a softmax, which have second derivatives everywhere.

References:
    Radford et al. (2019), Language models are unsupervised multitask learners.
"""

import json
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

# Standard deviation of all weights, and that of what is added to the residual stream
# divided by the root of how often it is.
_SPREAD = 0.02


@dataclass(frozen=True, kw_only=True)
class Config:
    """Sizes, by the names that configs of GPT-2 have."""

    n_layer: int
    n_head: int
    n_embd: int
    vocab_size: int
    n_positions: int

    @classmethod
    def read(cls, path: Path) -> "Config":
        """Read a config; what else stands in the file is passed over."""
        given = json.loads(path.read_text())
        if not isinstance(given, dict):
            raise TypeError("it holds no names")
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    def __post_init__(self) -> None:
        """Refuse sizes that no model has."""
        for name, size in vars(self).items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"{name} is {size!r} and not a whole number from 1 up")
        if self.n_embd % self.n_head:
            raise ValueError(f"{self.n_head} heads do not divide {self.n_embd}")

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        width = self.n_embd
        block = 12 * width**2 + 13 * width
        return self.n_layer * block + (self.vocab_size + self.n_positions + 2) * width


class Attention(nn.Module):
    """Causal attention of several heads."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        """Mix positions, each with those before it."""
        batch, length, width = x.shape
        parts = self.c_attn(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        after = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(after, float("-inf")).softmax(-1)
        return self.c_proj((weights @ value).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """Attention and a perceptron, each added to what came in."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.n_embd
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(config)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Add both to the residual stream."""
        x = x + self.attn(self.ln_1(x))
        hidden = functional.gelu(self.c_fc(self.ln_2(x)), approximate="tanh")
        return x + self.c_proj(hidden)


class Gpt2(nn.Module):
    """Token ids to logits of the next token."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits of shape (batch, length, vocabulary)."""
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.wte(ids) + self.wpe(places)
        for block in self.h:
            x = block(x)
        return functional.linear(self.ln_f(x), self.wte.weight)


def build(config: Config, *, device: str, seed: int) -> Gpt2:
    """Build a model with random weights, drawn where it lives."""
    torch.manual_seed(seed)
    with torch.device(device):
        model = Gpt2(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                added = name.endswith("c_proj.weight")
                depth = (2 * config.n_layer) ** 0.5 if added else 1.0
                parameter.normal_(0, _SPREAD / depth)
            elif name.endswith("bias"):
                parameter.zero_()
    return model


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy over all places."""
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
