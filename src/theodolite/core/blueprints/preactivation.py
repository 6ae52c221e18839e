"""Pre-activation residual networks for small images."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from ..errors import ConfigError
from .description import Blueprint, check_integers

ImageNormalisation = Literal["batch", "none"]


@final
@dataclass(frozen=True, kw_only=True)
class PreactivationBlueprint(Blueprint):
    r"""A pre-activation residual network with units of any length.

    A unit of ``shortcut`` layers computes $x + F_n(\cdots F_1(x))$, where each layer
    $F$ is batch normalisation, ReLU, then a 3×3 convolution without bias. Stages have
    equally many layers; the first convolution of a later stage doubles the channels
    and halves the image, and there the identity path drops every second row and
    column and is padded with zero channels. That path has no parameters, so networks
    that differ in ``shortcut`` alone have exactly the same parameters.

    Attributes:
        depth: Convolutions of the units, plus 2 for the stem and the classifier.
        shortcut: Layers per unit, the paper's n.
        width: Channels of the stem and the first stage.
        stages: Number of stages.
        channels: Channels of the images.
        classes: Number of outputs.
        skip: Whether units have the identity path.
        norm: Whether layers have batch normalisation.
        branch_scale: Factor on the last convolution of every unit at the start;
            below 1, deep networks without normalisation start at a finite size.

    References:
        He et al. (2016), Identity Mappings in Deep Residual Networks; He et al.
        (2016), Deep Residual Learning, section 4.2, option A.

    Example:
        >>> plan = PreactivationBlueprint(depth=38, shortcut=4)
        >>> plan.units, plan.parameters
        (9, 561370)
    """

    kind: ClassVar[str] = "pre-activation network"

    width: int = 16
    shortcut: int = 2
    stages: int = 3
    channels: int = 3
    classes: int = 10
    skip: bool = True
    norm: ImageNormalisation = "batch"
    branch_scale: float = 1.0

    def __post_init__(self) -> None:
        check_integers(
            self, "depth", "shortcut", "width", "stages", "channels", "classes"
        )
        scale = self.branch_scale
        number = isinstance(scale, int | float) and not isinstance(scale, bool)
        if not number or not 0 <= scale < math.inf:
            raise ConfigError(f"branch_scale is {scale!r}: pass a number from 0 up")
        step = self.stages * self.shortcut
        if self.depth < 2 + step or (self.depth - 2) % step:
            near = 2 + max(1, round((self.depth - 2) / step)) * step
            raise ConfigError(
                f"depth {self.depth} does not leave whole units of {self.shortcut} "
                f"layers in {self.stages} equal stages: try depth {near}"
            )

    @property
    def units(self) -> int:
        """Number of residual units, the paper's R."""
        return (self.depth - 2) // self.shortcut

    @property
    def layer_channels(self) -> tuple[tuple[int, int], ...]:
        """Channels into and out of every convolution of the units, in order."""
        per_stage = (self.depth - 2) // self.stages
        outs = [self.width * 2**stage for stage in range(self.stages)]
        channels = [out for out in outs for _ in range(per_stage)]
        return tuple(zip([self.width, *channels[:-1]], channels, strict=True))

    @property
    def parameters(self) -> int:
        """Number of trainable numbers; it does not depend on ``shortcut``."""
        own = 2 if self.norm == "batch" else 0  # a scale and a shift per channel
        layers = sum(9 * a * b + own * a for a, b in self.layer_channels)
        last = self.layer_channels[-1][1]
        head = own * last + last * self.classes + self.classes
        return 9 * self.channels * self.width + layers + head
