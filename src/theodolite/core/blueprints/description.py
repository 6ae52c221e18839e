"""The abstract blueprint that theory predicts and networks build; its simplest kinds.

They are fully connected: units of n matrices beside a shortcut, layers with one skip
each, and a network whose paths are counted. Other kinds have a file each.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, Self, final, get_args

import numpy as np

from ..errors import ConfigError, unknown_name

ACTIVATIONS = (
    "identity",
    "relu",
    "tanh",
    "symmetric_sigmoid",
    "silu",
    "exp",
    "polynomial",
)


def parse_activation(spec: str) -> tuple[str, tuple[float, ...]]:
    """Split ``name`` or ``name:a,b`` into a known name and its coefficients.

    Only ``polynomial`` takes coefficients: those of z, z², …, so that it is 0 at 0.

    Example:
        >>> parse_activation("polynomial:1.5,1")
        ('polynomial', (1.5, 1.0))
    """
    name, colon, rest = spec.partition(":")
    if name not in ACTIVATIONS:
        raise unknown_name("activation", name, ACTIVATIONS)
    try:
        coefficients = tuple(float(part) for part in rest.split(",")) if colon else ()
    except ValueError:
        coefficients = (math.nan,)
    wanted = name == "polynomial"
    if wanted != bool(colon) or not all(map(math.isfinite, coefficients)):
        raise ConfigError(
            f"activation {spec!r}: polynomial takes numbers after a colon, others "
            "take none; write for instance 'polynomial:1.5,1' or 'tanh'"
        )
    return name, coefficients


@dataclass(frozen=True, kw_only=True)
class Blueprint(ABC):
    """Description of an architecture; subclasses are final.

    Attributes:
        kind: The architecture in words, for messages.
        width: Size of a layer, or of the first one where layers grow.
        depth: Number of layers with weights.
    """

    kind: ClassVar[str]

    width: int
    depth: int

    @property
    @abstractmethod
    def units(self) -> int:
        """Number of residual units."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Number of trainable numbers."""

    def with_(self, **changes: Any) -> Self:
        """Return a changed copy."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)


def check_integers(blueprint: object, *names: str) -> None:
    """Raise if a field is not an integer of at least 1."""
    for name in names:
        value = getattr(blueprint, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name} is {value!r}: pass a whole number from 1 up")


Initialisation = Literal["zero", "small", "xavier", "orthogonal"]
Position = Literal["pre", "mid", "post"]


@final
@dataclass(frozen=True, kw_only=True)
class ShortcutBlueprint(Blueprint):
    r"""An n-shortcut network, or the plain network with the same layers.

    A unit of ``shortcut`` weight matrices computes
    $x + \sigma_{post}(W_n\,\sigma_{mid}(\dots W_1\,\sigma_{pre}(x)))$; without
    ``skip`` the identity is left out. ``bias`` adds a vector after every matrix of a
    unit except the last, as in the two-layer unit $x + W_2\,\sigma(W_1 x + b)$.

    Attributes:
        width: Dimension of input, output and every layer.
        depth: Number of weight matrices, a multiple of ``shortcut``.
        shortcut: Weight matrices per unit, the paper's n.
        skip: Whether units have the identity path.
        pre: Activation before the first matrix of a unit.
        mid: Activation between two matrices of a unit.
        post: Activation after the last matrix of a unit.
        bias: Whether units have biases.
        init: How ``networks.build`` draws the weights.
        init_scale: Factor on Xavier weights under ``small``.

    References:
        Li et al. (2016), Demystifying ResNet, definitions 1 and 2.

    Example:
        >>> ShortcutBlueprint(width=10, depth=16, shortcut=2).units
        8
    """

    kind: ClassVar[str] = "shortcut network"

    shortcut: int = 2
    skip: bool = True
    pre: str = "identity"
    mid: str = "identity"
    post: str = "identity"
    bias: bool = False
    init: Initialisation = "small"
    init_scale: float = 0.01

    def __post_init__(self) -> None:
        check_integers(self, "width", "depth", "shortcut")
        if self.depth % self.shortcut:
            near = self.depth - self.depth % self.shortcut or self.shortcut
            raise ConfigError(
                f"depth {self.depth} is not a multiple of shortcut {self.shortcut}: "
                f"units would be cut; try depth {near}"
            )
        for position in get_args(Position):
            parse_activation(getattr(self, position))
        scale = self.init_scale
        if not 0 < scale < math.inf:
            raise ConfigError(
                f"init_scale is {scale!r}: pass a positive number, or init='zero'"
            )

    @property
    def units(self) -> int:
        """Number of residual units, the paper's R."""
        return self.depth // self.shortcut

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        d, n = self.width, self.shortcut
        return self.units * (n * d * d + (n - 1) * d * self.bias)

    @property
    def linear(self) -> bool:
        """Whether the network is a linear map for every choice of weights."""
        return (self.pre, self.mid, self.post) == ("identity",) * 3 and not self.bias


Normalisation = Literal["scalar", "batch", "none"]


@final
@dataclass(frozen=True, kw_only=True)
class LayerwiseBlueprint(Blueprint):
    r"""A residual network of single ReLU layers, with a linear readout.

    $N_1 = S_1\,\mathrm{ReLU}(W_1 x)$ and
    $N_l = N_{l-1} + S_l\,\mathrm{ReLU}(W_l N_{l-1})$ for $l = 2 \dots p$: the first
    layer has no skip. The classes' scores are $V N_p$.

    ``norm`` chooses the scale $S_l$. ``scalar``: $S_l = \lambda_l / \sigma_l$, one
    trained number over the mean of the units' standard deviations in the batch, and
    no shift. ``batch``: ordinary batch normalisation between matrix and ReLU, with a
    scale and a shift per unit. ``none``: $S_l = 1$.

    Attributes:
        inputs: Dimension of a sample.
        width: Units of every layer, the paper's n.
        depth: ReLU layers, the paper's p; the readout is not counted.
        classes: Number of outputs.
        norm: How layers are scaled, as above.
        init_scale: Factor on weights of variance 1/fan-in; not on the readout.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, equations 7
        and 20.

    Example:
        >>> plan = LayerwiseBlueprint(inputs=8, width=4, depth=3, classes=2)
        >>> plan.units, plan.parameters
        (2, 75)
    """

    kind: ClassVar[str] = "layerwise residual network"

    inputs: int
    classes: int
    norm: Normalisation = "scalar"
    init_scale: float = 1.0

    def __post_init__(self) -> None:
        check_integers(self, "inputs", "width", "depth", "classes")
        scale = self.init_scale
        number = isinstance(scale, int | float) and not isinstance(scale, bool)
        if not number or not 0 < scale < math.inf:
            raise ConfigError(f"init_scale is {scale!r}: pass a positive number")

    @property
    def units(self) -> int:
        """Number of residual units: every layer except the first."""
        return self.depth - 1

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        n = self.width
        weights = self.inputs * n + (self.depth - 1) * n * n + n * self.classes
        own = {"scalar": 1, "batch": 2 * n, "none": 0}[self.norm]
        return weights + self.depth * own


Sharing = Literal["cyclic", "by_input"]


@final
@dataclass(frozen=True, kw_only=True)
class PathBlueprint(Blueprint):
    r"""A fully connected ReLU network with a skip around every layer except the first.

    $N_1 = \mathrm{ReLU}(W_1^\top x)$,
    $N_l = \mathrm{ReLU}(W_l^\top N_{l-1}) + N_{l-1}$ for $l > 1$, and the output is the
    sum of $N_p$; without ``skip`` the second term is left out. With ``unique`` the
    matrices hold only that many different numbers: under ``cyclic`` sharing
    $W_l[a,b] = w_{(a+b+l) \bmod \Lambda}$. ``by_input`` differs in the first layer
    only, where $W_1[a,b] = w_{a \bmod \Lambda}$.

    Attributes:
        width: Units per layer, the paper's n.
        depth: Layers, the paper's p.
        inputs: Dimension of the input, the paper's d.
        skip: Whether layers from the second on have the identity beside them.
        unique: Number of different weights, the paper's $\Lambda$; all by default.
        sharing: Which edges have the same weight.
        scale: Root mean square C of the different weights, exactly;
            $1/\sqrt n$ by default.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, Eqs 4, 7 and 8.

    Example:
        >>> plan = PathBlueprint(inputs=3, width=4, depth=5, unique=2)
        >>> plan.units, plan.parameters, plan.with_(unique=None).parameters
        (4, 2, 76)
    """

    kind: ClassVar[str] = "fully connected residual network"

    inputs: int
    skip: bool = True
    unique: int | None = None
    sharing: Sharing = "cyclic"
    scale: float | None = None

    def __post_init__(self) -> None:
        check_integers(self, "inputs", "width", "depth")
        if self.unique is not None:
            check_integers(self, "unique")
        scale = self.scale
        if scale is not None and not 0 < scale < math.inf:
            raise ConfigError(f"scale is {scale!r}: pass a positive number, or None")

    @property
    def units(self) -> int:
        """Number of layers with a skip."""
        return self.depth - 1 if self.skip else 0

    @property
    def edges(self) -> int:
        """Number of entries of all matrices, the paper's N."""
        return self.width * (self.inputs + (self.depth - 1) * self.width)

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return self.edges if self.unique is None else self.unique

    @property
    def rms(self) -> float:
        """Root mean square of the different weights, the paper's C."""
        return self.width**-0.5 if self.scale is None else float(self.scale)

    @property
    def indices(self) -> tuple[np.ndarray, ...]:
        """Index of the weight on each edge, one matrix per layer."""
        into = [self.inputs] + [self.width] * (self.depth - 1)
        if self.unique is None:
            starts = np.cumsum([0, *(a * self.width for a in into)])
            return tuple(
                start + np.arange(a * self.width).reshape(a, self.width)
                for start, a in zip(starts, into, strict=False)
            )
        matrices = []
        for layer, a in enumerate(into, start=1):
            row, column = np.arange(a)[:, None], np.arange(self.width)[None]
            own = layer == 1 and self.sharing == "by_input"
            place = row + 0 * column if own else row + column + layer
            matrices.append(place % self.unique)
        return tuple(matrices)
