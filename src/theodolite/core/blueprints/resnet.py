"""Pre-activation ResNets with projections where the shape changes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from ..errors import ConfigError
from .description import Blueprint, check_integers

ResnetBlock = Literal["basic", "bottleneck"]
ResnetStem = Literal["small", "large"]

# Kernel sizes of a branch, and output channels of its last layer over its width.
_KERNELS = {"basic": (3, 3), "bottleneck": (1, 3, 1)}
_EXPANSION = {"basic": 1, "bottleneck": 4}
_STEM_KERNEL = {"small": 3, "large": 7}


@final
@dataclass(frozen=True, kw_only=True)
class ResnetBlueprint(Blueprint):
    r"""A pre-activation ResNet such as PreAct-ResNet18 or PreAct-ResNet50.

    A block computes $x + g(x)$, or where the shape changes $(\alpha I + A)\,z + g(x)$
    with $z$ the normalised and rectified input that the branch $g$ begins with, $A$ a
    convolution of 1×1 and $I$ the stride-s average pool times s, padded with zero
    channels on both sides. Every later stage doubles the channels and halves the
    image. Nothing is normalised between the last block and the mean over pixels.

    Attributes:
        blocks: Number of blocks of every stage.
        block: ``basic``, two convolutions of 3×3, or ``bottleneck``, of 1×1, 3×3 and
            1×1 with four times the channels at the end.
        width: Channels of the stem and of the first stage's branches.
        stem: ``small``, one convolution of 3×3, or ``large``, one of 7×7 with stride
            2 and a maximum over 3×3 with stride 2.
        channels: Channels of the images.
        classes: Number of outputs.
        added_identity: $\alpha$; 0 for projections alone.
        depth: Convolutions of the branches, stem and classifier; computed.

    References:
        He et al. (2016), Identity Mappings in Deep Residual Networks; MacDonald et
        al. (2023), On skip connections and normalisation layers in deep
        optimisation, eqs. (14) and (15).

    Example:
        >>> ResnetBlueprint().depth, ResnetBlueprint().parameters
        (18, 11171146)
        >>> ResnetBlueprint(blocks=(3, 4, 6, 3), block="bottleneck").depth
        50
    """

    kind: ClassVar[str] = "pre-activation ResNet"

    width: int = 64
    depth: int = 0
    blocks: tuple[int, ...] = (2, 2, 2, 2)
    block: ResnetBlock = "basic"
    stem: ResnetStem = "small"
    channels: int = 3
    classes: int = 10
    added_identity: float = 0.0

    def __post_init__(self) -> None:
        check_integers(self, "width", "channels", "classes")
        object.__setattr__(self, "blocks", _as_blocks(self.blocks))
        scale = self.added_identity
        number = isinstance(scale, int | float) and not isinstance(scale, bool)
        if not number or not math.isfinite(scale):
            raise ConfigError(f"added_identity is {scale!r}: pass a finite number")
        depth = 2 + self.units * len(self.kernels)
        if self.depth not in (0, depth):
            raise ConfigError(
                f"depth is {self.depth!r}, and these blocks make {depth} layers: leave "
                "depth out"
            )
        object.__setattr__(self, "depth", depth)

    @property
    def units(self) -> int:
        """Number of residual blocks."""
        return sum(self.blocks)

    @property
    def kernels(self) -> tuple[int, ...]:
        """Kernel sizes of a branch's convolutions, in order."""
        return _KERNELS[self.block]

    @property
    def stem_kernel(self) -> int:
        """Kernel size of the stem."""
        return _STEM_KERNEL[self.stem]

    @property
    def block_shapes(self) -> tuple[tuple[int, int, int, int], ...]:
        """Channels in, within and out of each block, and its stride, in order."""
        blocks, into = [], self.width
        for stage, count in enumerate(self.blocks):
            inner = self.width * 2**stage
            out = inner * _EXPANSION[self.block]
            for place in range(count):
                stride = 2 if stage and not place else 1
                blocks.append((into, inner, out, stride))
                into = out
        return tuple(blocks)

    def layer_channels(self, into: int, inner: int, out: int) -> list[tuple[int, int]]:
        """Return channels into and out of the convolutions of one branch."""
        middle = [inner] * (len(self.kernels) - 1)
        return list(zip([into, *middle], [*middle, out], strict=True))

    @property
    def parameters(self) -> int:
        """Number of trainable numbers; it does not depend on ``added_identity``."""
        total = self.stem_kernel**2 * self.channels * self.width
        for into, inner, out, stride in self.block_shapes:
            layers = self.layer_channels(into, inner, out)
            for kernel, (a, b) in zip(self.kernels, layers, strict=True):
                total += kernel**2 * a * b + 2 * a
            total += into * out if stride > 1 or into != out else 0
        last = self.block_shapes[-1][2]
        return total + last * self.classes + self.classes


def _as_blocks(blocks: Sequence[int]) -> tuple[int, ...]:
    given = tuple(map(int, blocks))
    if not given or min(given) < 1:
        raise ConfigError(
            f"blocks is {blocks!r}: pass the number of blocks of every stage, whole "
            "numbers from 1 up, such as (2, 2, 2, 2)"
        )
    return given
