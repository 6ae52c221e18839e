"""Committed rows first: what is judged and drawn where a long run is there."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from theodolite.core import Claim, Rows, Verdict
from theodolite.studies.committed_run import COMMITTED, PREDICTED
from theodolite.studies.study import Drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def own(measured: Rows) -> Rows:
    """Return the rows that a run measured itself."""
    return measured.where(lambda row: row.get("source") != COMMITTED)


def chosen(predicted: Rows, measured: Rows) -> tuple[Rows, Rows]:
    """Return both roads of the committed run where it is there, else of this one.

    Where the committed run brings no theory, this run's stays.

    Example:
        >>> rows = Rows([{"quantity": "loss", "value": 1.0, "source": "committed"},
        ...              {"quantity": "loss", "value": 2.0}])
        >>> chosen(Rows(), rows)[1].values()
        array([1.])
    """
    found = measured.where(source=COMMITTED)
    if not len(found):
        return predicted, measured
    theory = found.where(side=PREDICTED)
    known = predicted.where(lambda row: row.get("source") in (None, COMMITTED))
    rest = found.where(lambda row: row.get("side") != PREDICTED)
    return theory if len(theory) else known, rest


def judged(claim: Claim, *, on: str = "") -> Claim:
    """Judge a claim on the committed run where it is there, and say so.

    What the run itself would say is told beside it.

    Args:
        claim: What is judged.
        on: Data of the committed run, if this run has other data altogether.
    """
    where = f" on {on}" if on else ""

    def check(predicted: Rows, measured: Rows) -> Verdict:
        theory, rows = chosen(predicted, measured)
        verdict = claim.check(theory, rows)
        if not len(measured.where(source=COMMITTED)):
            return verdict
        mine = own(measured)
        alone = claim.check(own(predicted), mine).outcome if len(mine) else None
        networks = len({row["trial"] for row in rows if "trial" in row})
        told = f"by the committed run{where}, up to {networks} networks a point"
        told += f"; by this run alone: {alone}" if alone else ""
        because = f"{verdict.because} ({told})"
        return replace(verdict, because=because, rests_on=COMMITTED, alone=alone)

    return replace(claim, check=check)


def drawn(drawing: Drawing) -> Drawing:
    """Draw the committed run where it is there, and say so."""
    caption = (
        f"{drawing.caption} Drawn from the committed run at paper scale where this run "
        "fetched it, else from its own networks."
    )
    return replace(drawing, caption=caption, draw=_draw(drawing.draw, chosen))


def drawn_own(drawing: Drawing, name: str, caption: str) -> Drawing:
    """Draw what a run measured itself, under another name."""

    def choose(predicted: Rows, measured: Rows) -> tuple[Rows, Rows]:
        return own(predicted), own(measured)

    return Drawing(name, caption, _draw(drawing.draw, choose))


def _draw(
    draw: Callable[[Rows, Rows], "Figure"],
    choose: Callable[[Rows, Rows], tuple[Rows, Rows]],
) -> Callable[[Rows, Rows], "Figure"]:
    return lambda predicted, measured: draw(*choose(predicted, measured))
