"""A figure as files: the same figure gives the same bytes."""

import logging
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from matplotlib.figure import Figure

from theodolite.core import ConfigError, unknown_name
from theodolite.figures.style import house_style

# Subsetting a font for PDF remarks on the dates in it, which are left out below.
logging.getLogger("fontTools").setLevel(logging.ERROR)

# Whatever would differ between two days or two releases is left out.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def save(
    figure: Figure, stem: str, formats: Sequence[str] = ("svg", "png", "pdf")
) -> dict[str, bytes]:
    """Return the files of a figure; the caller decides where they go.

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
    files = {}
    for kind in formats:
        if kind not in _METADATA:
            raise unknown_name("figure format", kind, _METADATA)
        target = BytesIO()
        with house_style():
            figure.savefig(target, format=kind, metadata=_METADATA[kind])
        files[f"{stem}.{kind}"] = target.getvalue()
    return files
