"""Claims of figure 1(e) and section 4.2 on weights without batch normalisation."""

from theodolite.core import (
    Choice,
    Claim,
    Row,
    Rows,
    Select,
    Test,
    above,
    at_each,
    beyond,
    measured,
)

from ..shared.trainings import (
    ONE_WIDTH,
    Make,
    at_the_end,
    grown,
    over_trainings,
    steady,
)
from .config import RUN

NORM = measured("norm").log10()
MORE = above(
    5e-4, source="ours", why="three times how far readings of 20 updates leave a line"
)


def for_each_start(make: Make, rows: Select = NORM, **options: bool) -> Test:
    """Judge the networks of every starting size, in every training."""
    starts = {
        f"start {scale:g} × $1/\\sqrt{{n}}$": (rows.at(init_scale=scale), make)
        for scale in (1.0, 0.5)
    }
    return over_trainings(starts, **options)


def _excess(rows: Rows) -> Rows:
    """Return the share of first-order changes in all, less one half."""

    def key(row: Row) -> tuple:
        return tuple(row[k] for k in (*RUN, "step"))

    rest = {key(row): row["value"] for row in rows.where(quantity="tangential")}
    table = []
    for row in rows.where(lambda row: row["step"] > 0, quantity="radial"):
        first, second = row["value"], rest[key(row)]
        whole = abs(first) + second
        number = {"value": first / whole - 0.5, "error": 2 * row["error"] / whole}
        table.append({**row, "quantity": "first_order_excess", **number})
    return Rows(table)


EXCESS = measured("first_order_excess").out_of(_excess)
EXCESS = EXCESS.called("share of first-order changes in all, less one half")

WHICH = Choice(
    what="the norm of the layers' weights, without the readout's",
    why="in section 3 the output is the sum of the last layer, without a readout",
)


CLAIMS = (
    Claim(
        name="norm-grows",
        place="Figure 1(e), section 4.2",
        statement="Without batch normalisation the norm of the weights increases over "
        "training.",
        test=for_each_start(grown),
        rival="a norm that ends where it began, or lower",
        choices=(WHICH,),
        departures=ONE_WIDTH,
    ),
    Claim(
        name="norm-grows-steadily",
        place="Section 4.2",
        statement="The increase of the norm is steady.",
        test=for_each_start(steady(MORE), quarters=False),
        rival="a norm that falls first",
        choices=(WHICH,),
        departures=ONE_WIDTH,
    ),
    beyond(
        name="every-layer-grows",
        place="Beside figure 1(e)",
        statement="The norm of every single layer ends above its start.",
        test=for_each_start(
            lambda rows: at_each("layer", rows, grown), measured("layer_norm").log10()
        ),
        rival="growth of the first and last layers alone",
    ),
    beyond(
        name="growth-is-first-order",
        place="Beside theorem 4",
        statement="The growth comes from gradients along the weights, $-2\\mu\\,w^T "
        "g$, more than from the second order $\\mu^2\\|g\\|^2$ that is all there is "
        "where $\\partial L/\\partial C = 0$: the weights are stretched because the "
        "loss still falls with $C$, not from a point where it rests.",
        test=for_each_start(at_the_end, EXCESS),
        rival="a gradient that is orthogonal to the weights nearly all the time",
    ),
)
