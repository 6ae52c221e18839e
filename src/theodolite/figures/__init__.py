"""Rows to figures: the house style, its marks and its files; computes nothing.

Nothing of matplotlib is imported until a name of this room is used.
"""

from typing import TYPE_CHECKING

from theodolite.core import attach

if TYPE_CHECKING:
    from theodolite.figures.axes import legend, log_axis
    from theodolite.figures.export import save
    from theodolite.figures.marks import band, curve, rule
    from theodolite.figures.series import SeriesStyle, series_style
    from theodolite.figures.style import PALETTE, house_style, new_figure

    __all__ = [
        "PALETTE",
        "SeriesStyle",
        "band",
        "curve",
        "house_style",
        "legend",
        "log_axis",
        "new_figure",
        "rule",
        "save",
        "series_style",
    ]
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "axes": ["legend", "log_axis"],
            "export": ["save"],
            "marks": ["band", "curve", "rule"],
            "series": ["SeriesStyle", "series_style"],
            "style": ["PALETTE", "house_style", "new_figure"],
        },
    )
