"""Save figures as small files; equal figures give equal bytes."""

import logging
import re
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

# What would differ between two days or two releases is left out.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
# Series of more marks become pixels, also in SVG and PDF.
_MANY = 2_000
_DPI = {"png": 200.0}
_PIXELS = 150.0
# A hundredth of a point is less than a tenth of a pixel on the finest of screens.
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_DATA = re.compile(r'(?<= )(d|x|y|points|transform|width|height)="([^"]*)"')
_BREAK = re.compile(r"\s*\n\s*")
_LETTER = re.compile(r"\s*([A-Za-z])\s*")
_USES = re.compile(
    r"(?P<open><g(?: clip-path=\"[^\"]*\")?>)"
    r"(?P<uses>(?:<use [^>]*?style=\"[^\"]*\"/>){2,})</g>"
)
_STYLE = re.compile(r' style="([^"]*)"')
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_SVG_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_BETWEEN = re.compile(r">\s+<")
_ID = re.compile(r'(?<= )id="([^"]*)"')
_TO = re.compile(r"(?<=[\"(])#([\w.-]+)")
_GROUP = re.compile(r'<g id="[^"]*"')
_MOVED = re.compile(r'(<use [^>]*) transform="translate\((\S+) (\S+?)\)"')


def save(
    figure: Figure, stem: str, formats: Sequence[str] = ("svg", "png", "pdf")
) -> dict[str, bytes]:
    """Return the files of a figure; the caller decides where they go.

    Legends that would cover data are moved, and series of very many marks become
    pixels.

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
    if kind == "svg":
        return compact(target.getvalue().decode()).encode()
    return target.getvalue()


def _marks(artist: Artist) -> int:
    if isinstance(artist, Line2D):
        return np.size(artist.get_xdata())
    if isinstance(artist, Collection):
        offsets = np.shape(artist.get_offsets())[0]
        return max(offsets, sum(len(path) for path in artist.get_paths()))
    return 0


def compact(svg: str) -> str:
    r"""Return an SVG with the same picture in fewer bytes.

    Example:
        >>> compact('<g id="a"> <path d="M 1.23456 0.00049 \nL 2 3"/> </g>')
        '<g><path d="M1.23 0L2 3"/></g>'
    """
    svg = _BETWEEN.sub("><", _SVG_METADATA.sub("", _COMMENT.sub("", svg)))
    svg = _MOVED.sub(_placed, _GROUP.sub("<g", svg))
    svg = _DATA.sub(_shorter, svg)
    return _renamed(_USES.sub(_styled_once, svg))


def _renamed(svg: str) -> str:
    """Give parts that others refer to the shortest names."""
    names = {name: f"p{place}" for place, name in enumerate(_ID.findall(svg))}
    svg = _ID.sub(lambda match: f'id="{names[match[1]]}"', svg)
    return _TO.sub(lambda match: "#" + names.get(match[1], match[1]), svg)


def _placed(match: re.Match[str]) -> str:
    """Write the place of a letter as x and y, which is shorter than a translation."""
    use, across, up = match.groups()
    above = "" if float(up) == 0 else f' y="{up}"'
    return f'{use} x="{across}"{above}'


def _shorter(match: re.Match[str]) -> str:
    name, data = match.groups()
    # Scales of glyphs are small numbers by which large ones are multiplied.
    least = 5 if name == "transform" else 2
    data = _NUMBER.sub(lambda number: _rounded(number[0], least), data)
    data = _BREAK.sub(" ", data).strip()
    if name == "d":
        data = _LETTER.sub(lambda letter: letter[1], data)
    return f'{name}="{data}"'


def _rounded(number: str, least: int) -> str:
    digits = 2 if abs(float(number)) >= 1 else least
    text = f"{float(number):.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _styled_once(match: re.Match[str]) -> str:
    """Move a style that all marks of a group share to the group."""
    styles = set(_STYLE.findall(match["uses"]))
    if len(styles) != 1:
        return match[0]
    opened = f'{match["open"][:-1]} style="{styles.pop()}">'
    return f"{opened}{_STYLE.sub('', match['uses'])}</g>"
