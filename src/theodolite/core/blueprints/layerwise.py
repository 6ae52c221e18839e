"""Fully connected residual networks whose skips pass over one layer each."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from ..errors import ConfigError
from .description import Blueprint, check_integers

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
