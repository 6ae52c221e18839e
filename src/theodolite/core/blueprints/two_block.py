"""Small convolutional networks of two blocks, with and without skips."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final, get_args

from ..errors import ConfigError, unknown_name
from .description import Blueprint, check_integers

Isometry = Literal["average", "haar", "random"]
Place = Literal["skip", "branch"]
LayerInitialisation = Literal["default", "he", "xavier", "orthogonal"]

# Padding of the last convolution at which branch and skip shrink an image alike.
_PADDING = {2: 1, 3: 0}


@final
@dataclass(frozen=True, kw_only=True)
class TwoBlockBlueprint(Blueprint):
    r"""A stem, two pre-activation blocks, and a linear readout, on grey images.

    The stem is a convolution and an average pool. Both blocks apply batch
    normalisation, ReLU, convolution twice: the first keeps the shape and has the
    identity as its skip; the second takes ``width`` to ``wide`` channels and shrinks
    the image by ``stride``, and its skip is $A + cI$ on the activated input, with a
    trained 1×1 convolution $A$ and a fixed map $I$. Batch normalisation over all
    features, ReLU and a linear layer follow. Without skips both blocks are chains.

    ``isometry`` says what $I$ is. ``average``: the average pool of that stride, times
    the stride, with zeros for new channels. ``haar``: the same with details of the
    blocks of pixels in the new channels. ``random``: a random map of blocks of pixels
    with orthonormal rows. ``place`` says what it is added to: the skip, or the first
    convolution of the branch, there at that convolution's stride of 2.

    Attributes:
        width: Channels of the stem and of the first block.
        depth: Layers on the way through the branches, readout included: always 6.
        wide: Channels of the second block.
        side: Side of the images in pixels.
        classes: Number of outputs.
        stem_kernel: Side of the stem's kernel, without padding.
        stem_pool: Stride of the stem's average pool.
        kernel: Side of the first block's kernels, an odd number.
        stride: Stride of the second block: 2, or 3 from a side of 9 or 12.
        skips: Whether blocks have skips.
        added: $c$, the scale of the fixed map.
        isometry: What the fixed map is.
        place: What it is added to.
        init: How weights are drawn; see ``networks.build``.
        init_scale: Factor on the weights of the blocks' convolutions.

    References:
        MacDonald et al. (2023), On skip connections and normalisation layers in deep
        optimisation, section 6.2; sizes are from the authors' published script.

    Example:
        >>> plan = TwoBlockBlueprint(added=1.0)
        >>> plan.inner, plan.shrunk, plan.features, plan.parameters
        (12, 4, 320, 9970)
    """

    kind: ClassVar[str] = "network of two blocks"

    width: int = 5
    depth: int = 6
    wide: int = 20
    side: int = 28
    classes: int = 10
    stem_kernel: int = 5
    stem_pool: int = 2
    kernel: int = 5
    stride: int = 3
    skips: bool = True
    added: float = 0.0
    isometry: Isometry = "average"
    place: Place = "skip"
    init: LayerInitialisation = "default"
    init_scale: float = 1.0

    def __post_init__(self) -> None:
        whole = ("width", "depth", "wide", "side", "classes", "stem_kernel")
        check_integers(self, *whole, "stem_pool", "kernel", "stride")
        options = {"isometry": Isometry, "place": Place, "init": LayerInitialisation}
        for name, known in options.items():
            if (given := getattr(self, name)) not in get_args(known):
                raise unknown_name(name, given, get_args(known))
        _check_number("added", self.added, least=0.0)
        _check_number("init_scale", self.init_scale)
        self._check_skips()
        self._check_sizes()

    @property
    def inner(self) -> int:
        """Side of the image after the stem."""
        return (self.side - self.stem_kernel + 1) // self.stem_pool

    @property
    def shrunk(self) -> int:
        """Side of the image after the second block."""
        return self.inner // self.stride

    @property
    def last_padding(self) -> int:
        """Padding of the second block's last convolution."""
        return _PADDING[self.stride]

    @property
    def features(self) -> int:
        """Number of inputs of the readout."""
        return self.wide * self.shrunk**2

    @property
    def units(self) -> int:
        """Number of residual units."""
        return 2 if self.skips else 0

    @property
    def parameters(self) -> int:
        """Number of trainable numbers; the projection counts only where it is used."""
        n, wide = self.width, self.wide
        first = 2 * (n * n * self.kernel**2 + n) + 4 * n
        second = (9 * n + 1) * wide + (9 * wide + 1) * wide + 2 * (n + wide)
        skip = (n + 1) * wide if self.skips else 0
        head = (2 + self.classes) * self.features + self.classes
        return (self.stem_kernel**2 + 1) * n + first + second + skip + head

    def _check_skips(self) -> None:
        if self.depth != 6:
            raise ConfigError(
                f"depth is {self.depth}: a network of two blocks has 6 layers"
            )
        if self.wide < self.width:
            raise ConfigError(
                f"the second block takes {self.width} channels to {self.wide}: an "
                "identity has no room in fewer channels; pass wide >= width"
            )
        if self.added and not self.skips:
            raise ConfigError(
                f"added is {self.added} in a network without skips: pass skips=True, "
                "or added=0"
            )
        if self.kernel % 2 == 0:
            raise ConfigError(
                f"kernel is {self.kernel}: a block that keeps the side of its image "
                "wants an odd one"
            )

    def _check_sizes(self) -> None:
        grown = self.side - self.stem_kernel + 1
        if grown < 1 or grown % self.stem_pool:
            raise ConfigError(
                f"a stem of kernel {self.stem_kernel} makes {grown} pixels of "
                f"{self.side}, and pools of {self.stem_pool} do not tile them: change "
                "stem_kernel or stem_pool"
            )
        if self.stride not in _PADDING:
            raise ConfigError(f"stride is {self.stride}: pass 2 or 3")
        halved = (self.inner - 1) // 2 + 1
        branch = halved + 2 * self.last_padding - 2
        if self.inner % self.stride or branch != self.shrunk:
            raise ConfigError(
                f"branch and skip of stride {self.stride} do not shrink a side of "
                f"{self.inner} alike: stride 2 wants an even one, stride 3 one of 9 "
                "or 12"
            )


def _check_number(name: str, value: object, least: float | None = None) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and math.isfinite(value) and (value > 0 or value == least):  # type: ignore[arg-type,operator]
        return
    wanted = "a positive number" if least is None else "a number from 0 up"
    raise ConfigError(f"{name} is {value!r}: pass {wanted}")
