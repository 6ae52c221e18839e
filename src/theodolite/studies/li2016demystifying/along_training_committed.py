"""Figures 5 and 6 at paper scale: rows that come with the package, and their verdicts.

The rows of both roads are committed, since theory depends on the data as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from theodolite.core import Claim, Rows, Verdict, plain
from theodolite.studies.li2016demystifying.committed_rows import (
    committed_config,
    committed_digest,
    committed_rows,
)
from theodolite.studies.study import Drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "along_training"
CELL: dict[str, Any] = {"source": "committed"}


def digest() -> str:
    """Return the digest of the committed rows, empty where there are none."""
    return committed_digest(NAME)


def rows() -> Rows:
    """Return the committed rows of both roads, under the names that the study uses."""
    return Rows(
        {**row, "kind": row.get("network"), **CELL} for row in committed_rows(NAME)
    )


def of_cell(config: Any, cell: Mapping[str, Any]) -> Rows:
    """Return the committed rows of one cell, if this very config made them."""
    ours, theirs = plain(config), committed_config(NAME)
    if not theirs or any(ours.get(key) != value for key, value in theirs.items()):
        return Rows()
    return rows().where(side="measured", **cell)


def own(measured: Rows) -> Rows:
    """Return what this run measured."""
    return measured.where(lambda row: row.get("source") is None)


def chosen(predicted: Rows, measured: Rows) -> tuple[Rows, Rows]:
    """Return both roads of the committed run where it is there, else of this one."""
    found = measured.where(**CELL)
    if not len(found):
        return predicted, measured
    return found.where(side="predicted"), found.where(side="measured")


def judged(claim: Claim) -> Claim:
    """Judge a claim on the committed run where it is there, and say so."""

    def check(predicted: Rows, measured: Rows) -> Verdict:
        verdict = claim.check(*chosen(predicted, measured))
        networks = len(measured.where(task="levels", **CELL).levels("trial"))
        if not networks:
            return verdict
        told = f"{verdict.because} (by the committed run, {networks} networks a point)"
        return replace(verdict, because=told)

    return replace(claim, check=check)


def drawn(drawing: Drawing) -> Drawing:
    """Draw the committed run where it is there."""
    return replace(drawing, draw=_draw(drawing.draw, chosen))


def drawn_here(drawing: Drawing, name: str, caption: str) -> Drawing:
    """Draw this run beside it, under another name."""

    def choose(predicted: Rows, measured: Rows) -> tuple[Rows, Rows]:
        return predicted, own(measured)

    return replace(
        drawing, name=name, caption=caption, draw=_draw(drawing.draw, choose)
    )


def _draw(
    draw: Callable[[Rows, Rows], "Figure"],
    choose: Callable[[Rows, Rows], tuple[Rows, Rows]],
) -> Callable[[Rows, Rows], "Figure"]:
    return lambda predicted, measured: draw(*choose(predicted, measured))
