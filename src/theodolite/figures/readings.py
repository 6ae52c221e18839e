"""Draw any reading: a special drawing for some classes, one for all others."""

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from theodolite.core import Reading

from .drawings import draw_collapse, draw_ensemble, draw_unravelled
from .readings_generic import draw_generic
from .readings_layers import (
    draw_blocks,
    draw_margins,
    draw_points,
    draw_sharpness,
    draw_trajectory,
)
from .readings_spectra import (
    draw_density,
    draw_diagonal,
    draw_extremes,
    draw_matrix,
    draw_singular,
    draw_spectrum,
)
from .style import house_style

Draw = Callable[[Any], Figure]

# By the name of the class: this package may import core alone.
_KINDS: dict[str, Draw] = {
    "Spectrum": draw_spectrum,
    "SpectralDensity": draw_density,
    "ExtremeEigenvalues": draw_extremes,
    "Diagonal": draw_diagonal,
    "DenseHessian": draw_matrix,
    "DenseTangentKernel": draw_matrix,
    "SingularValues": draw_singular,
    "Collapse": lambda reading: draw_collapse(reading.rows()),
    "ClassifierNorms": draw_margins,
    "PathEnsemble": lambda reading: draw_ensemble(reading.rows()),
    "UnravelledPaths": lambda reading: draw_unravelled(reading.rows()),
    "SharpnessAlong": draw_sharpness,
    "Trajectory": draw_trajectory,
    "Blocks": draw_blocks,
    "CriticalPoints": draw_points,
}


@house_style()
def draw_reading(reading: Reading, *, title: str | None = None) -> Figure:
    """Return a figure of a reading, with its error.

    A class without a special drawing shows its first quantities: a list along its
    dimension, a table as an image, a number with its interval.

    Args:
        reading: Any reading.
        title: Above the figure; by default class, norm mode and, where the reading is
            not trusted, its status.

    Example:
        >>> from dataclasses import dataclass
        >>> from typing import ClassVar
        >>> from theodolite.core import Status
        >>> @dataclass(frozen=True, kw_only=True, eq=False)
        ... class Pair(Reading):
        ...     dims: ClassVar = {"values": ("place",)}
        ...     values: tuple
        >>> figure = draw_reading(
        ...     Pair(values=(1.0, 2.0), status=Status.EXACT, norm_mode="eval")
        ... )
        >>> figure.axes[0].get_ylabel()
        'values'
    """
    names = [kind.__name__ for kind in type(reading).__mro__]
    draw = next((_KINDS[name] for name in names if name in _KINDS), draw_generic)
    figure = draw(reading)
    if title is None:
        title = f"{type(reading).__name__}, norm mode {reading.norm_mode}"
        if not reading.status.trusted:
            title += f", not trusted: {reading.status}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, fontweight="bold")
    return figure
