r"""A network of two blocks as the product of its layers' derivatives on a batch.

Activations are taken once, in train mode. A convolution is then a matrix and a norm
behind which a ReLU follows is a diagonal less a product of thin matrices,

$$ g \mapsto g \circ d - (g P)\,Q, $$

so that hundreds of cotangents of all samples go through a layer in one product, which
is faster than one backward pass for each. Rows of an image come first in every vector
(row, channel, column), so that convolutions are band matrices, and products with them
are made band by band.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# Number of groups of columns of a band matrix.
GROUPS = 4
# Cotangents pulled back at a time; activations of a batch then stay in the cache.
CHUNK = 32


@dataclass(frozen=True, kw_only=True)
class BandMap:
    """A linear map of each sample, as products of parts of its matrix."""

    parts: tuple[tuple[slice, Tensor], ...]

    @classmethod
    def of(cls, apply: Callable[[Tensor], Any], shape: torch.Size, like: Tensor) -> Any:
        """Return the linear part of an affine map of images of a shape."""
        channels, height, width = shape
        units = torch.eye(channels * height * width).to(like)
        images = units.reshape(-1, height, channels, width).transpose(1, 2)
        images_of_units = apply(images) - apply(torch.zeros_like(images[:1]))
        matrix = rows_first(images_of_units).T.contiguous()
        groups = matrix.split(-(-matrix.shape[1] // GROUPS), dim=1)
        return cls(parts=tuple(map(_band, groups)))

    def pull(self, cotangents: Tensor) -> Tensor:
        """Return the products of rows with the matrix, on the last axis."""
        return torch.cat([cotangents[..., i] @ part for i, part in self.parts], dim=-1)


@dataclass(frozen=True, kw_only=True)
class NormRelu:
    """Batch normalisation with the batch's statistics, and a ReLU behind it."""

    diagonal: Tensor  # derivative at statistics held, (samples, features)
    # Maps cotangents to those of the statistics, (samples, features, 2 channels).
    reads: Tensor
    writes: Tensor  # maps these back to the batch, (2 channels, samples, features)

    @classmethod
    def of(cls, norm: nn.BatchNorm2d, x: Tensor) -> "NormRelu":
        """Return the derivative at a batch of images."""
        hat, factor = standardised(norm, x, (0, 2, 3))
        y = hat * norm.weight[:, None, None] + norm.bias[:, None, None]
        mask = rows_first((y > 0).to(x))
        samples, channels = x.shape[:2]
        entries = x.numel() // channels
        ones = torch.eye(channels).to(x)[:, :, None, None].expand(-1, *x.shape[1:])
        ones = rows_first(ones).unsqueeze(1).expand(-1, samples, -1)
        spread = torch.cat([ones, ones * rows_first(hat)])
        scale = rows_first(factor[None, :, None, None].expand_as(x))
        return cls(
            diagonal=mask * scale,
            reads=(spread * mask).permute(1, 2, 0) / entries,
            writes=spread * scale,
        )

    def pull(self, cotangents: Tensor, *, coupled: bool) -> Tensor:
        """Pull (k, samples, features) back; coupled or with statistics held."""
        if not coupled:
            return cotangents * self.diagonal[: cotangents.shape[1]]
        rows = cotangents.flatten(1)
        read = rows @ self.reads.flatten(0, 1)
        direct = rows * self.diagonal.reshape(-1)
        pulled = torch.addmm(direct, read, self.writes.flatten(1), alpha=-1)
        return pulled.reshape(cotangents.shape)


@dataclass(frozen=True, kw_only=True)
class BlockMap:
    """A block's derivative: norm and convolution twice, and the skip."""

    enter: NormRelu
    first: BandMap
    between: NormRelu
    second: BandMap
    skip: BandMap | None
    identity: bool

    @classmethod
    def of(cls, block: Any, x: Tensor) -> "BlockMap":
        """Return the derivative of a block at the batch that enters it."""
        branch = block.branch
        u = branch.activated(x)
        z = branch.inner(u)
        past = getattr(block, "skip", None)
        skips = past is not None and isinstance(block.project, nn.Conv2d)
        return cls(
            enter=NormRelu.of(branch.norm_first, x),
            first=BandMap.of(branch.inner, u.shape[1:], u),
            between=NormRelu.of(branch.norm_second, z),
            second=BandMap.of(branch.second, z.shape[1:], u),
            skip=BandMap.of(past, u.shape[1:], u) if past and skips else None,
            identity=getattr(block, "skips", False),
        )

    def pull(self, cotangents: Tensor, *, coupled: bool) -> Tensor:
        """Pull (k, samples, features) back through the block."""
        inner = self.between.pull(self.second.pull(cotangents), coupled=coupled)
        entered = self.first.pull(inner)
        if self.skip is not None:
            entered += self.skip.pull(cotangents)
        pulled = self.enter.pull(entered, coupled=coupled)
        return pulled + cotangents if self.identity else pulled


@dataclass(frozen=True, kw_only=True)
class Linearised:
    """A network's derivative behind its stem: two blocks and the readout."""

    keeping: BlockMap
    shrinking: BlockMap
    readout: Tensor

    @classmethod
    def of(cls, network: Any, images: Tensor) -> "Linearised":
        """Linearise a network at a batch; this updates its running statistics."""
        with torch.no_grad():
            x = network.pool(network.stem(images))
            y = network.keeping(x)
            z = network.shrinking(y)
            return cls(
                keeping=BlockMap.of(network.keeping, x),
                shrinking=BlockMap.of(network.shrinking, y),
                readout=_readout(network, z),
            )

    def composite(self) -> Tensor:
        """Return the Jacobian of all scores by what the stem gives, samples coupled."""
        samples, classes = self.readout.shape[:2]
        scores = self.readout.reshape(samples * classes, samples, -1)
        return self._pulled(scores, coupled=True).flatten(1)

    def blocks(self, samples: int) -> Tensor:
        """Return a Jacobian of both blocks per sample, of the first few samples."""
        size = self.readout.shape[-1]
        units = torch.eye(size).to(self.readout)
        given = units[:, None, :].expand(-1, samples, -1)
        return self._pulled(given, coupled=False).transpose(0, 1)

    def _pulled(self, cotangents: Tensor, *, coupled: bool) -> Tensor:
        with torch.no_grad():
            parts = (
                self.shrinking.pull(part, coupled=coupled)
                for part in cotangents.split(CHUNK)
            )
            pulled = [self.keeping.pull(part, coupled=coupled) for part in parts]
        return torch.cat(pulled)


def rows_first(images: Tensor) -> Tensor:
    """Flatten images (samples, channels, rows, columns), rows of pixels first."""
    return images.transpose(1, 2).flatten(1)


def standardised(norm: Any, x: Tensor, over: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return a batch less its means over its deviations, and the norm's slopes."""
    variance, mean = torch.var_mean(x, over, correction=0, keepdim=True)
    deviation = (variance + norm.eps).sqrt()
    return (x - mean) / deviation, norm.weight / deviation.flatten()


def _readout(network: Any, images: Tensor) -> Tensor:
    """Return scores (samples, classes) by features (samples, features) of the batch."""
    z = rows_first(images)
    order = rows_first(torch.arange(z.shape[1]).reshape(1, *images.shape[1:])).flatten()
    norm, weight = network.norm, network.head.weight[:, order]
    hat, slopes = standardised(norm, images.flatten(1), (0,))
    on = functional.relu(hat * norm.weight + norm.bias).sign()[:, order]
    hat, slopes = hat[:, order], slopes[order]
    samples = len(z)
    spread = (1 + hat[:, None] * hat) / samples
    direct = torch.eye(samples).to(z)[:, :, None] - spread
    return (weight * slopes)[None, :, None] * (on[:, None] * direct)[:, None]


def _band(columns: Tensor) -> tuple[slice, Tensor]:
    used = columns.ne(0).any(1).nonzero()
    low, high = (int(used.min()), int(used.max()) + 1) if len(used) else (0, 1)
    return slice(low, high), columns[low:high].contiguous()
