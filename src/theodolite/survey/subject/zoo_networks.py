"""Networks of the zoo that no paper of ours needs: classic ResNets, a small ViT, a GPT.

Parameters go by the names of torchvision's checkpoints, where it has the network.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class ClassicBlock(nn.Module):
    """Convolutions with batch norm, then the skip is added, then ReLU.

    Args:
        into: Input channels.
        inner: Channels of the branch.
        stride: Stride of the 3×3 convolution, and of the skip.
        bottleneck: Whether a branch is 1×1, 3×3, 1×1, with four times the channels.
    """

    def __init__(self, into: int, inner: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        out = inner * 4 if bottleneck else inner
        kernels = (1, 3, 1) if bottleneck else (3, 3)
        widths = (into, *(inner,) * (len(kernels) - 1), out)
        strided = kernels.index(3)
        self.depth = len(kernels)
        for place, kernel in enumerate(kernels):
            step = stride if place == strided else 1
            layer = _convolution(widths[place], widths[place + 1], kernel, step)
            self.add_module(f"conv{place + 1}", layer)
            self.add_module(f"bn{place + 1}", nn.BatchNorm2d(widths[place + 1]))
        self.relu = nn.ReLU()
        self.downsample: nn.Module | None = None
        if stride > 1 or into != out:
            self.downsample = nn.Sequential(
                _convolution(into, out, 1, stride), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block to a batch of images."""
        z: Any = x
        for place in range(1, self.depth + 1):
            z = getattr(self, f"bn{place}")(getattr(self, f"conv{place}")(z))
            if place < self.depth:
                z = self.relu(z)
        skip = x if self.downsample is None else self.downsample(x)
        return self.relu(z + skip)


class ClassicResnet(nn.Module):
    """A ResNet as first published, with the norm in the branch and ReLU behind the sum.

    Args:
        blocks: Number of blocks of every stage.
        bottleneck: Kind of the blocks.
        large: Whether the stem is a 7×7 convolution with max pooling, for large images.
        width: Channels of the first stage.
        classes: Number of outputs.

    References:
        He et al. (2016), Deep Residual Learning for Image Recognition, table 1 and
        section 4.2, with projections where the shape changes.
    """

    def __init__(
        self,
        blocks: tuple[int, ...],
        *,
        bottleneck: bool = False,
        large: bool = True,
        width: int = 64,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.conv1 = _convolution(3, width, 7 if large else 3, 2 if large else 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        pool: nn.Module = nn.MaxPool2d(3, stride=2, padding=1)
        self.maxpool = pool if large else nn.Identity()
        into = width
        for stage, count in enumerate(blocks):
            inner = width * 2**stage
            units: list[nn.Module] = []
            for place in range(count):
                stride = 2 if stage and not place else 1
                units.append(ClassicBlock(into, inner, stride, bottleneck))
                into = inner * 4 if bottleneck else inner
            self.add_module(f"layer{stage + 1}", nn.Sequential(*units))
        self.stages = len(blocks)
        self.fc = nn.Linear(into, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images to scores."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(x.mean(dim=(2, 3)))


def _convolution(into: int, out: int, kernel: int, stride: int) -> nn.Conv2d:
    layer = nn.Conv2d(into, out, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


class AttentionBlock(nn.Module):
    """Self-attention and a two-layer MLP, each with a norm and a skip.

    Args:
        width: Features of a token.
        heads: Number of heads.
        causal: Whether a token sees only those before it.
        norm_first: Norms in the branches; behind the sums otherwise.
    """

    def __init__(
        self, width: int, heads: int, *, causal: bool, norm_first: bool
    ) -> None:
        super().__init__()
        self.heads, self.causal, self.norm_first = heads, causal, norm_first
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.act = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block to (samples, tokens, width)."""
        if self.norm_first:
            x = x + self._attend(self.norm1(x))
            return x + self.down(self.act(self.up(self.norm2(x))))
        x = self.norm1(x + self._attend(x))
        return self.norm2(x + self.down(self.act(self.up(x))))

    def _attend(self, x: Tensor) -> Tensor:
        samples, tokens, width = x.shape
        parts = self.qkv(x).view(samples, tokens, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        if self.causal:
            hidden = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device)
            scores = scores.masked_fill(hidden.triu(1), float("-inf"))
        mixed = functional.softmax(scores, dim=-1) @ value
        return self.projection(mixed.transpose(1, 2).reshape(x.shape))


class PatchTransformer(nn.Module):
    """A vision transformer that averages its tokens.

    References:
        Dosovitskiy et al. (2021), An Image is Worth 16x16 Words; sizes of ViT-Tiny.
    """

    def __init__(
        self,
        *,
        side: int = 32,
        patch: int = 4,
        width: int = 192,
        depth: int = 12,
        heads: int = 3,
        classes: int = 10,
    ) -> None:
        super().__init__()
        self.image_size = side
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(torch.randn(1, (side // patch) ** 2, width) * 0.02)
        self.blocks = nn.ModuleList(
            AttentionBlock(width, heads, causal=False, norm_first=True)
            for _ in range(depth)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Map images to scores."""
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


class TokenTransformer(nn.Module):
    """A decoder that scores the next token.

    References:
        Radford et al. (2019), Language Models are Unsupervised Multitask Learners;
        norms behind the sums as in Vaswani et al. (2017), Attention Is All You Need.
    """

    def __init__(
        self,
        *,
        vocabulary: int = 256,
        context: int = 64,
        width: int = 128,
        depth: int = 4,
        heads: int = 4,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.02)
        self.blocks = nn.ModuleList(
            AttentionBlock(width, heads, causal=True, norm_first=norm_first)
            for _ in range(depth)
        )
        self.norm: nn.Module = nn.LayerNorm(width) if norm_first else nn.Identity()
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Map (samples, tokens) to scores (samples, tokens, vocabulary)."""
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
