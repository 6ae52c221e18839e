"""Networks of the size that people train, with random weights and made-up data.

Libraries' own where they are installed, else networks of the same kind and size written
here; the name says which. All give logits that ``CrossEntropyLoss`` takes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.networks import Data, norms, residual_net
from bench.peers import Missing

Made = tuple[nn.Module, Data]


@dataclass(frozen=True)
class Subject:
    """A network to take products of.

    Attributes:
        name: What it is called in rows.
        make: Builds model and data, of a number of samples.
        modes: Norm modes to measure in.
        batches: Numbers of samples.
    """

    name: str
    make: Callable[[int], Made]
    modes: tuple[str, ...] = ("eval",)
    batches: tuple[int, ...] = (16, 32, 64)


class Attending(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's outputs."""
        count, tokens, width = x.shape
        mixed = self.mix(self.norm1(x)).view(count, tokens, 3, self.heads, -1)
        q, k, v = mixed.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(
            q, k, v, is_causal=self.causal
        )
        x = x + self.out(attended.transpose(1, 2).reshape(count, tokens, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Patches(nn.Module):
    """A vision transformer that averages its tokens."""

    def __init__(self, width: int, depth: int, heads: int, side: int, patch: int):
        super().__init__()
        self.cut = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(0.02 * torch.randn((side // patch) ** 2, width))
        blocks = [Attending(width, heads, causal=False) for _ in range(depth)]
        self.body = nn.Sequential(*blocks, nn.LayerNorm(width))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        tokens = self.cut(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.body(tokens).mean(1))


class Language(nn.Module):
    """A GPT-2-style decoder; logits come as (samples, words, tokens)."""

    def __init__(self, width: int, depth: int, heads: int, tokens: int, words: int):
        super().__init__()
        self.words, self.places = (
            nn.Embedding(words, width),
            nn.Embedding(tokens, width),
        )
        blocks = [Attending(width, heads, causal=True) for _ in range(depth)]
        self.body = nn.Sequential(*blocks, nn.LayerNorm(width))
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, by the embedding's own rows."""
        places = self.places(torch.arange(x.shape[1], device=x.device))
        hidden = self.body(self.words(x) + places)
        return functional.linear(hidden, self.words.weight).transpose(1, 2)


class Depthwise(nn.Module):
    """A block as in ConvNeXt."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.spread = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's outputs."""
        z = self.norm(self.spread(x).permute(0, 2, 3, 1))
        return x + self.down(functional.gelu(self.up(z))).permute(0, 3, 1, 2)


class Logits(nn.Module):
    """A language model of ``transformers`` that returns nothing but logits."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Return logits as (samples, words, tokens)."""
        return self.inner(input_ids=x).logits.transpose(1, 2)


def _images(batch: int, side: int, classes: int) -> Data:
    return torch.randn(batch, 3, side, side), torch.arange(batch) % classes


def _text(batch: int, tokens: int, words: int) -> Data:
    text = torch.randint(0, words, (batch, tokens + 1))
    return text[:, :-1], text[:, 1:]


def vision(name: str, timm_name: str) -> Callable[[int], Made]:
    """Return a builder of a network of torchvision, or else of timm."""

    def make(batch: int) -> Made:
        model = _library("torchvision", name) or _library("timm", timm_name)
        if model is None:
            raise Missing("neither torchvision nor timm is installed")
        return _moved(model), _images(batch, 224, 1000)

    return make


def _library(library: str, name: str) -> nn.Module | None:
    try:
        module: Any = import_module(library)
    except ImportError:
        return None
    if library == "timm":
        return module.create_model(name, pretrained=False)
    return getattr(module.models, name)(weights=None)


def _moved(model: nn.Module) -> nn.Module:
    """Move running statistics away from those of no data."""
    for norm in norms(model):
        norm.running_mean.normal_(0, 0.1)
        norm.running_var.uniform_(0.5, 2)
    return model


def gpt2(batch: int) -> Made:
    """Return GPT-2 of 124 million parameters at 256 tokens."""
    words = 50_257
    try:
        they: Any = import_module("transformers")
        quiet = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        config = they.GPT2Config(attn_implementation="sdpa", use_cache=False, **quiet)
        model: nn.Module = Logits(they.GPT2LMHeadModel(config))
    except ImportError:
        model = Language(768, 12, 12, 256, words)
    return model, _text(batch, 256, words)


BOTH = ("batch", "eval")
LARGE = (
    Subject("ResNet-18", vision("resnet18", "resnet18"), BOTH),
    Subject("ResNet-50", vision("resnet50", "resnet50"), BOTH),
    Subject("ConvNeXt-T", vision("convnext_tiny", "convnext_tiny")),
    Subject("ViT-B/16", vision("vit_b_16", "vit_base_patch16_224")),
    Subject(
        "ViT-B/16, written here",
        lambda n: (Patches(768, 12, 12, 224, 16), _images(n, 224, 10)),
    ),
    Subject("GPT-2" if find_spec("transformers") else "GPT-2, written here", gpt2),
)
TINY = (
    Subject(
        "residual",
        lambda n: (_moved(residual_net(3, 4, 1, 10)), _images(n, 8, 10)),
        BOTH,
        (4,),
    ),
    Subject(
        "depthwise",
        lambda n: (
            nn.Sequential(
                nn.Conv2d(3, 4, 2, 2),
                Depthwise(4),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Linear(4, 10),
            ),
            _images(n, 8, 10),
        ),
        batches=(4,),
    ),
    Subject(
        "patches", lambda n: (Patches(8, 1, 2, 8, 4), _images(n, 8, 10)), batches=(4,)
    ),
    Subject(
        "language", lambda n: (Language(8, 1, 2, 6, 12), _text(n, 6, 12)), batches=(4,)
    ),
)
