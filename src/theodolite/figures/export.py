"""A figure as files: the same figure gives the same bytes."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from theodolite.core import ConfigError, unknown_name
from theodolite.figures.compact import compact
from theodolite.figures.legends import settle
from theodolite.figures.style import house_style

# Subsetting a font for PDF remarks on the dates in it, which are left out below.
logging.getLogger("fontTools").setLevel(logging.ERROR)

# Whatever would differ between two days or two releases is left out.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
# Marks beyond so many are pixels, also in files that otherwise hold shapes.
_MANY = 2_000
_DPI = {"png": 200.0}
_PIXELS = 150.0


def save(
    figure: Figure, stem: str, formats: Sequence[str] = ("svg", "png", "pdf")
) -> dict[str, bytes]:
    """Return the files of a figure; the caller decides where they go.

    Legends that would lie over data are moved to a free place, and series of very many
    marks become pixels.

    Args:
        figure: What :func:`new_figure` made.
        stem: File name without its ending.
        formats: Among ``svg``, ``png`` and ``pdf``.

    Returns:
        File name to content, in the order of ``formats``.

    Example:
        >>> from theodolite.figures import new_figure
        >>> list(save(new_figure()[0], "empty", ["svg"]))
        ['empty.svg']
    """
    if not stem or "/" in stem or "\\" in stem:
        raise ConfigError(
            f"figure name {stem!r} is not a plain file name: try 'condition'"
        )
    for kind in formats:
        if kind not in _METADATA:
            raise unknown_name("figure format", kind, _METADATA)
    with house_style():
        settle(figure)
        for crowd in _crowds(figure):
            crowd.set_rasterized(True)
        with _drawn_once(figure):
            return {f"{stem}.{kind}": _file(figure, kind) for kind in formats}


@contextmanager
def _drawn_once(figure: Any) -> Iterator[None]:
    """Keep matplotlib from a first drawing of each file, for a layout that is made.

    It makes one wherever there is an engine, also one that only holds the place of
    another, and no public call removes that.
    """
    engine, figure._layout_engine = figure.get_layout_engine(), None
    try:
        yield
    finally:
        figure._layout_engine = engine


def _file(figure: Figure, kind: str) -> bytes:
    target = BytesIO()
    dpi = _DPI.get(kind, _PIXELS)
    figure.savefig(target, format=kind, dpi=dpi, metadata=_METADATA[kind])
    if kind == "svg":
        return compact(target.getvalue().decode()).encode()
    return target.getvalue()


def _crowds(figure: Figure) -> Iterator[Artist]:
    """Yield the artists that have too many marks to be drawn one by one."""
    for panel in figure.axes:
        for artist in (*panel.lines, *panel.collections):
            if _marks(artist) > _MANY:
                yield artist


def _marks(artist: Artist) -> int:
    if isinstance(artist, Line2D):
        return np.size(artist.get_xdata())
    if isinstance(artist, Collection):
        offsets = np.shape(artist.get_offsets())[0]
        return max(offsets, sum(len(path) for path in artist.get_paths()))
    return 0
