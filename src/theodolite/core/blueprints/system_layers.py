"""Layers of a multilayer parameterised system, as values."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from ..errors import ConfigError, unknown_name
from .description import check_integers

# How parameters become a matrix: unchanged; rows, or entries, divided by the root of
# eps plus their squares; a length times a direction, without eps.
Parameterisation = Literal["plain", "weight_norm", "entry_norm", "length_direction"]
# Statistics of the batch, differentiated through; or constants that the layer holds.
BatchStatistics = Literal["batch", "held"]
Shape = tuple[int, ...]

NONLINEARITIES = (
    "identity",
    "tanh",
    "sigmoid",
    "symmetric_sigmoid",
    "log_sigmoid",
    "softplus",
    "softsign",
    "tanhshrink",
    "gelu",
    "silu",
    "elu",
    "ramp",
    "relu",
    "three_halves",
)


class SystemLayer(ABC):
    """Base class of layers, which map parameters and inputs to outputs."""

    kind: ClassVar[str]

    @abstractmethod
    def shape_after(self, shape: Shape) -> Shape:
        """Return the shape of a sample after the layer, or refuse its shape."""

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return 0

    @property
    def weighted(self) -> int:
        """Number of matrices and kernels."""
        return 0

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the fields as plain JSON values."""
        return {"layer": self.kind, **vars(self)}


class _MatrixLayer(SystemLayer):
    """A layer with one parameterised matrix, ``out`` rows by ``columns``."""

    out: int
    parameterisation: Parameterisation
    eps: float
    scale: float
    bias: bool

    @property
    @abstractmethod
    def columns(self) -> int:
        """Columns of the matrix."""

    @property
    def weight_bound(self) -> float:
        """Least upper bound of the norm of k P over all parameters."""
        rows, entries = self.out, self.out * self.columns
        squares = {"weight_norm": rows, "entry_norm": entries}
        return self.scale * math.sqrt(squares.get(self.parameterisation, math.inf))

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        lengths = self.parameterisation == "length_direction"
        return self.out * (self.columns + lengths + self.bias)

    @property
    def weighted(self) -> int:
        """Number of matrices and kernels."""
        return 1

    def _check(self) -> None:
        check_integers(self, "into", "out")
        _check_positive("eps", self.eps)
        _check_positive("scale", self.scale)


@final
@dataclass(frozen=True, kw_only=True)
class AffineLayer(_MatrixLayer):
    r"""$Z \mapsto k\,P(w) Z + b 1^\top$.

    ``weight_norm``: $P(w)_i = w_i (\epsilon + \|w_i\|^2)^{-1/2}$ for rows $w_i$;
    ``entry_norm``: the same for every entry; ``length_direction``:
    $P(g, v)_i = g_i v_i / \|v_i\|$, as torch's own weight norm; ``plain``: $P(w) = w$.

    Attributes:
        into: Input features.
        out: Output features.
        parameterisation: P.
        eps: $\epsilon$ of the normalised parameterisations.
        scale: k, not trained.
        bias: Whether there is b.

    References:
        MacDonald et al. (2023), On skip connections and normalisation layers in deep
        optimisation, example A.1.

    Example:
        >>> AffineLayer(into=4, out=9, parameterisation="weight_norm").weight_bound
        3.0
    """

    kind: ClassVar[str] = "affine"

    into: int
    out: int
    parameterisation: Parameterisation = "plain"
    eps: float = 1.0
    scale: float = 1.0
    bias: bool = False

    def __post_init__(self) -> None:
        self._check()

    @property
    def columns(self) -> int:
        """Columns of the matrix: input features."""
        return self.into

    def shape_after(self, shape: Shape) -> Shape:
        """Return the shape of a sample after the layer, or refuse its shape."""
        if shape != (self.into,):
            raise _unfit(self, shape, (self.into,))
        return (self.out,)


@final
@dataclass(frozen=True, kw_only=True)
class ConvolutionLayer(_MatrixLayer):
    """A convolution: the affine layer with a row per channel, on unfolded patches.

    Attributes:
        into: Input channels.
        out: Output channels.
        kernel: Height and width of the kernel.
        stride: Step of patches along both.
        padding: Zeros at the borders of both.
        parameterisation: P of the kernel, one row per output channel.
        eps: Epsilon of the normalised parameterisations.
        scale: Factor, not trained.
        bias: Whether each output channel has a bias.

    Example:
        >>> ConvolutionLayer(into=1, out=5, kernel=(5, 5)).shape_after((1, 28, 28))
        (5, 24, 24)
    """

    kind: ClassVar[str] = "convolution"

    into: int
    out: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    parameterisation: Parameterisation = "plain"
    eps: float = 1.0
    scale: float = 1.0
    bias: bool = False

    def __post_init__(self) -> None:
        self._check()
        for name, least in (("kernel", 1), ("stride", 1), ("padding", 0)):
            _check_pair(name, getattr(self, name), least)

    @property
    def columns(self) -> int:
        """Columns of the kernel as a matrix: numbers in a patch."""
        return self.into * self.kernel[0] * self.kernel[1]

    @property
    def overlap(self) -> int:
        """Largest number of patches that contain the same pixel."""
        (a, b), (c, d) = self.kernel, self.stride
        return -(-a // c) * -(-b // d)

    def shape_after(self, shape: Shape) -> Shape:
        """Return the shape of a sample after the layer, or refuse its shape."""
        if len(shape) != 3 or shape[0] != self.into:
            raise _unfit(self, shape, (self.into, "height", "width"))
        sides = [
            (side + 2 * pad - kernel) // step + 1
            for side, kernel, step, pad in zip(
                shape[1:], self.kernel, self.stride, self.padding, strict=True
            )
        ]
        if min(sides) < 1:
            raise ConfigError(
                f"a kernel of {self.kernel} does not fit into an image of {shape[1:]} "
                f"with padding {self.padding}: pass larger images or more padding"
            )
        return (self.out, *sides)


@final
@dataclass(frozen=True, kw_only=True)
class BatchNormLayer(SystemLayer):
    r"""$Z \mapsto (Z - E[Z]) / \sqrt{\epsilon + \sigma[Z]^2}$ for each feature.

    Attributes:
        features: Features, or channels of images.
        eps: $\epsilon$.
        affine: Whether a trained scale and shift per feature follow.
        statistics: Those of the batch, or constants that the layer holds.

    References:
        MacDonald et al. (2023), example A.3.
    """

    kind: ClassVar[str] = "batch norm"

    features: int
    eps: float = 1e-5
    affine: bool = False
    statistics: BatchStatistics = "batch"

    def __post_init__(self) -> None:
        check_integers(self, "features")
        _check_positive("eps", self.eps)

    def shape_after(self, shape: Shape) -> Shape:
        """Return the shape of a sample after the layer, or refuse its shape."""
        if not shape or shape[0] != self.features:
            raise _unfit(self, shape, (self.features, "…"))
        return shape

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return 2 * self.features * self.affine


@final
@dataclass(frozen=True, kw_only=True)
class NonlinearLayer(SystemLayer):
    r"""A function of each entry.

    ``ramp`` is $z_+^2/2$ up to 1 and $z - 1/2$ beyond; ``three_halves`` is
    $\mathrm{sgn}(z)|z|^{3/2}$, whose slope is continuous and not Lipschitz.

    Attributes:
        activation: One of ``NONLINEARITIES``.

    References:
        MacDonald et al. (2023), example A.2.
    """

    kind: ClassVar[str] = "nonlinearity"

    activation: str

    def __post_init__(self) -> None:
        if self.activation not in NONLINEARITIES:
            raise unknown_name("nonlinearity", self.activation, NONLINEARITIES)

    def shape_after(self, shape: Shape) -> Shape:
        """Return the shape of a sample after the layer, which does not change."""
        return shape


@final
@dataclass(frozen=True, kw_only=True)
class FlattenLayer(SystemLayer):
    """A sample as one row of numbers."""

    kind: ClassVar[str] = "flatten"

    def shape_after(self, shape: Shape) -> Shape:
        """Return the shape of a sample after the layer."""
        return (math.prod(shape),)


def _check_positive(name: str, value: Any) -> None:
    if not 0 < value < math.inf:
        raise ConfigError(f"{name} is {value!r}: pass a positive number, as 1.0")


def _check_pair(name: str, value: object, least: int) -> None:
    if not isinstance(value, tuple) or min(value) < least:
        raise ConfigError(
            f"{name} is {value!r}: pass two whole numbers from {least} up"
        )


def _unfit(
    layer: SystemLayer, shape: Shape, wanted: tuple[int | str, ...]
) -> ConfigError:
    sizes = ", ".join(map(str, wanted)) + "," * (len(wanted) == 1)
    return ConfigError(
        f"samples of shape {shape} come to a layer of kind {layer.kind} that wants "
        f"({sizes}): change its sizes or the layer before it"
    )
