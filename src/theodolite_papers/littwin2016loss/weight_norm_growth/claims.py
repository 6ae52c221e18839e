"""Claims of figure 1(e) and section 4.2 on weights without batch normalisation."""

from collections.abc import Callable

from theodolite.core import (
    Choice,
    Claim,
    Rows,
    Select,
    Test,
    above,
    at_each,
    beyond,
    inside,
    mean,
    measured,
)

from ..shared.rows import grown, rising

NORM = measured("norm")


def for_each_start(make: Callable[[Select], Test], rows: Select = NORM) -> Test:
    """Judge the networks of every starting size."""
    return at_each("init_scale", rows, make)


def _last(rows: Rows) -> Rows:
    """Return the growth by first-order changes minus the growth by all others."""
    end = max(rows.levels("stage"), default=0)
    late = rows.where(stage=end)
    rest = {
        (row["init_scale"], row["trial"]): row["value"]
        for row in late.where(quantity="tangential")
    }
    return Rows(
        {
            **row,
            "quantity": "radial_excess",
            "value": row["value"] - rest[row["init_scale"], row["trial"]],
        }
        for row in late.where(quantity="radial")
    )


EXCESS = measured("radial_excess").out_of(_last)
STARTS = Choice(
    what="at every start: at the paper's $C = 1/\\sqrt{n}$ and at half of it, the "
    "readout's weights left out of the norm",
    why="the paper says neither where its network starts nor what it sums over; a "
    "claim on training that hangs on the start is no claim on training",
)
STAGES = Choice(
    what="steady: above the stage before at every stage, of stages evenly spaced in "
    "the logarithm of the step, the first after one update",
    why="the paper plots the norm against the iteration and gives no numbers",
)

CLAIMS = (
    Claim(
        name="norm-grows",
        place="Figure 1(e), section 4.2",
        statement="Without batch normalisation the norm of the weights increases over "
        "training.",
        test=for_each_start(grown),
        rival="a norm that ends where it began, or lower",
        choices=(STARTS,),
    ),
    Claim(
        name="norm-grows-steadily",
        place="Section 4.2",
        statement="The increase of the norm is steady.",
        test=for_each_start(lambda rows: rising(rows, "stage")),
        rival="a norm that falls first",
        choices=(STARTS, STAGES),
    ),
    beyond(
        name="every-layer-grows",
        place="Beside figure 1(e)",
        statement="The norm of every single layer ends above its start.",
        test=at_each(
            "layer", measured("layer_norm"), lambda rows: for_each_start(grown, rows)
        ),
        rival="growth of the first and last layers alone",
        choices=(STARTS,),
    ),
    beyond(
        name="growth-is-first-order",
        place="Beside theorem 4",
        statement="The growth comes from gradients along the weights, $-2\\mu\\,w^T "
        "g$, more than from the second order $\\mu^2\\|g\\|^2$ that is all there is "
        "where $\\partial L/\\partial C = 0$: the weights are stretched because the "
        "loss still falls with $C$, not from a point where it rests.",
        test=for_each_start(lambda rows: inside(mean(rows), above(0)), EXCESS),
        rival="a gradient that is orthogonal to the weights nearly all the time",
        choices=(STARTS,),
    ),
)
