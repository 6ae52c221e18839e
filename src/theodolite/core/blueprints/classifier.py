"""Plain ReLU classifiers of a few layers with a given initial norm."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from ..errors import ConfigError
from .description import Blueprint, check_integers

ClassifierFamily = Literal["dense", "convolutional"]
ClassifierNorm = Literal["batch", "none"]

KERNEL, STRIDE = 3, 2


@final
@dataclass(frozen=True, kw_only=True)
class ClassifierBlueprint(Blueprint):
    r"""A chain of layers without biases or skips, ReLU between them.

    $g(x) = W_L\,\sigma(N(W_{L-1} \cdots \sigma(N(W_1 x))))$, where $N$ is batch
    normalisation without scale and shift, or nothing; the last layer has none. Layers
    are dense, or convolutions of 3 x 3 pixels and stride 2; the last kernel is as
    large as its input image. Entries are normal, and every layer is then scaled to
    the same Frobenius norm.

    Attributes:
        inputs: Shape of a sample: any for dense layers, which flatten it; (channels,
            height, width) for convolutions.
        width: Units, or channels, of every layer except the last.
        depth: Layers with weights, the paper's L; the last is counted.
        outputs: 1 for labels of -1 and +1, else one score per class.
        family: Type of the layers.
        norm: Whether all layers except the last have batch normalisation.
        start_norm: Frobenius norm of each layer at the start.

    References:
        Poggio & Liao (2020), Generalization in deep network classifiers trained with
        the square loss, section 2.1 and figures 1, 6 and 10.

    Example:
        >>> plan = ClassifierBlueprint(inputs=(1, 8, 8), width=4, start_norm=5.0)
        >>> plan.depth, plan.parameters, plan.features
        (4, 292, 4)
        >>> plan.with_(family="convolutional").maps
        ((1, 8, 8), (4, 4, 4), (4, 2, 2), (4, 1, 1))
    """

    kind: ClassVar[str] = "plain classifier"

    inputs: tuple[int, ...]
    depth: int = 4
    outputs: int = 1
    family: ClassifierFamily = "dense"
    norm: ClassifierNorm = "batch"
    start_norm: float = 1.0

    def __post_init__(self) -> None:
        check_integers(self, "width", "depth", "outputs")
        object.__setattr__(self, "inputs", self._shape())
        size = self.start_norm
        number = isinstance(size, int | float) and not isinstance(size, bool)
        if not number or not 0 < size < math.inf:
            raise ConfigError(f"start_norm is {size!r}: pass a positive number")

    def _shape(self) -> tuple[int, ...]:
        shape = self.inputs
        wanted = 3 if self.family == "convolutional" else None
        if not shape or min(shape) < 1:
            raise ConfigError(
                f"inputs is {shape!r}: pass the shape of a sample as a tuple of whole "
                "numbers from 1 up"
            )
        if wanted and len(shape) != wanted:
            raise ConfigError(
                f"inputs is {shape!r} and convolutions want images: pass (channels, "
                "height, width)"
            )
        return tuple(map(int, shape))

    @property
    def units(self) -> int:
        """Number of residual units: none."""
        return 0

    @property
    def maps(self) -> tuple[tuple[int, int, int], ...]:
        """Channels, height and width of the input of every layer."""
        if self.family == "dense":
            sizes = [math.prod(self.inputs)] + [self.width] * (self.depth - 1)
            return tuple((size, 1, 1) for size in sizes)
        channels, height, width = self.inputs
        shapes = [(channels, height, width)]
        for _ in range(self.depth - 1):
            height, width = (-(-side // STRIDE) for side in (height, width))
            shapes.append((self.width, height, width))
        return tuple(shapes)

    @property
    def features(self) -> int:
        """Number of inputs of the last layer."""
        return math.prod(self.maps[-1])

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the weights of every layer, as matrices."""
        area = KERNEL**2 if self.family == "convolutional" else 1
        hidden = tuple((self.width, into[0] * area) for into in self.maps[:-1])
        return (*hidden, (self.outputs, self.features))

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(rows * columns for rows, columns in self.shapes)
