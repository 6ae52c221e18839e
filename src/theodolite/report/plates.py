"""The figures of a study: each once, its twin of the run itself folded beneath it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from theodolite.core import SavedFigure
from theodolite.report.collect import JudgedRun
from theodolite.report.drawings import inline_svg
from theodolite.report.prose import to_plain
from theodolite.report.sheet import Sheet

# What follows the name of a figure of the committed run where this run's is meant.
_HERE = "_here"
_DRAWN_FROM = re.compile(r"\s*Drawn from ([^.]*)\.\s*$")


@dataclass(frozen=True, kw_only=True)
class Plate:
    """A figure as the page shows it.

    Attributes:
        id: Its identifier in the page.
        caption: What it shows.
        run: Which run is drawn, and at what scale.
        svg: The drawing, where it is in the run's folder.
        twin: The same of this run, where the committed one is shown.
    """

    id: str
    caption: str
    run: str
    svg: Markup | None
    twin: "Plate | None" = None


def plates(run: JudgedRun, *, sheet: Sheet, name: Callable[[str], str]) -> list[Plate]:
    """Lay out the figures of a run.

    Args:
        run: The run.
        sheet: Where the page keeps what its drawings share.
        name: Gives a figure its identifier in the page.
    """
    figures = {one.name: one for one in run.summary.figures}
    twins = {
        one for one in figures if one.endswith(_HERE) and one[: -len(_HERE)] in figures
    }
    return [
        _plate(run, one, figures.get(f"{key}{_HERE}"), sheet, name)
        for key, one in figures.items()
        if key not in twins
    ]


def _plate(
    run: JudgedRun,
    figure: SavedFigure,
    twin: SavedFigure | None,
    sheet: Sheet,
    name: Callable[[str], str],
) -> Plate:
    return Plate(
        id=name(figure.name),
        caption=_DRAWN_FROM.sub("", figure.caption),
        run=_which(run, figure),
        svg=_drawn(run, figure, sheet),
        twin=_plate(run, twin, None, sheet, name) if twin else None,
    )


def _which(run: JudgedRun, figure: SavedFigure) -> str:
    """Say which run is drawn, in the caption's own words where it has some."""
    said = _DRAWN_FROM.search(figure.caption)
    told = said[1] if said else ""
    if figure.source == "own" or told in ("", "this run"):
        told = f"this run at scale {run.summary.scale}"
    return f"{told[:1].upper()}{told[1:]}"


def _drawn(run: JudgedRun, figure: SavedFigure, sheet: Sheet) -> Markup | None:
    text = run.drawing(figure.files)
    if not text:
        return None
    caption = to_plain(figure.caption) or figure.name
    return inline_svg(
        text,
        sheet=sheet,
        prefix=sheet.prefix(),
        label=f"{run.summary.study.title}: {caption}",
        source=f"figure {figure.name} of {run.summary.full_name}",
    )
