"""Save figures as files; equal figures give equal bytes."""

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

from .legends import lay_out
from .style import house_style

# fontTools logs remarks on the dates of a font, which are left out below.
logging.getLogger("fontTools").setLevel(logging.ERROR)

# Metadata that differs between days or releases is left out.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
# Series with more marks than this become pixels, also in SVG and PDF.
_MANY = 2_000
_DPI = {"png": 200.0}
_PIXELS = 150.0


def save(
    figure: Figure, stem: str, formats: Sequence[str] = ("svg", "png", "pdf")
) -> dict[str, bytes]:
    """Return the files of a figure; the caller decides where they go.

    Legends that would cover data are moved, and series of very many marks become
    pixels.

    Args:
        figure: Figure from :func:`new_figure`.
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
        lay_out(figure)
        for panel in figure.axes:
            for artist in (*panel.lines, *panel.collections):
                if _marks(artist) > _MANY:
                    artist.set_rasterized(True)
        with _drawn_once(figure):
            return {f"{stem}.{kind}": _file(figure, kind) for kind in formats}


@contextmanager
def _drawn_once(figure: Any) -> Iterator[None]:
    """Make matplotlib draw each file once; the layout is already done.

    It draws first wherever there is a layout engine, even a placeholder, and no public
    call removes that one.
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
    return target.getvalue()


def _marks(artist: Artist) -> int:
    if isinstance(artist, Line2D):
        return np.size(artist.get_xdata())
    if isinstance(artist, Collection):
        offsets = np.shape(artist.get_offsets())[0]
        return max(offsets, sum(len(path) for path in artist.get_paths()))
    return 0
