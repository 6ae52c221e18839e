"""Any reading as a figure: one drawing a kind, and one for all others."""

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from theodolite.core import ConfigError, Reading
from theodolite.figures.collapse_geometry import draw_collapse
from theodolite.figures.ensembles import draw_ensemble, draw_unravelled
from theodolite.figures.readings_generic import draw_anything
from theodolite.figures.readings_layers import draw_blocks, draw_margins, draw_points
from theodolite.figures.readings_matrices import draw_matrix, draw_singular
from theodolite.figures.readings_spectra import (
    draw_density,
    draw_diagonal,
    draw_extremes,
    draw_spectrum,
)
from theodolite.figures.readings_training import draw_sharpness, draw_trajectory
from theodolite.figures.style import house_style

Draw = Callable[[Any], Figure]

# By the name of their class: figures know core alone.
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
    """Draw what an instrument returned, with its error.

    Kinds that have no drawing of their own show their first quantities: a list along
    its dimension, a table as an image, a number with its interval.

    Args:
        reading: Any reading.
        title: Above the figure; the kind and its circumstances by default.

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
    if not isinstance(reading, Reading):
        raise ConfigError(
            f"a {type(reading).__name__} came, wanted is a reading: pass what an "
            "instrument returned"
        )
    names = [kind.__name__ for kind in type(reading).__mro__]
    draw = next((_KINDS[name] for name in names if name in _KINDS), draw_anything)
    figure = draw(reading)
    figure.suptitle(
        _told(reading) if title is None else title,
        x=0.01,
        ha="left",
        fontsize=9.5,
        fontweight="bold",
    )
    return figure


def _told(reading: Reading) -> str:
    """Return the kind, its norm mode and, where it is not trusted, its status."""
    words = [type(reading).__name__, f"norm mode {reading.norm_mode}"]
    words += [] if reading.status.trusted else [f"not trusted: {reading.status}"]
    return ", ".join(words)
