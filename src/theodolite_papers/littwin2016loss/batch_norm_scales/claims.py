"""Claims of section 4.1 and figure 1(d) on the scales of batch normalisation."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    Number,
    PredictedAndMeasured,
    Row,
    Rows,
    Select,
    above,
    at_each,
    beyond,
    erratum,
    inside,
    mean,
    measured,
    our_margin,
    trend,
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

Asides = Callable[[PredictedAndMeasured], dict[str, Number]]
AS_WIDE = our_margin(
    0.1,
    "of widths and samples in the hundreds, each a few parts in a hundred",
    centre=1.0,
)


def scale(norm: str, **labels: int) -> Select:
    """Select the scales' magnitudes of a kind of network."""
    return measured("scale", None, norm=norm, **labels)


def skipped(norm: str, **labels: int) -> Select:
    """Select the scales of all layers with a skip: every layer except the first."""
    rows = measured("scale", lambda row: row["layer"] > 1, norm=norm, **labels)
    return rows.called("scale of layers with a skip")


def every_layer(make: Make) -> Make:
    """Make the test that a test holds for the scale of every layer."""
    return lambda rows: at_each("layer", rows, make, name="growth by layer")


def by_norm(make: Make, of: Callable[[str], Select], name: str = "") -> dict:
    """Return a way to read a claim for each kind of normalisation."""
    return {f"{title}{name}": (of(norm), make) for norm, title in TITLES.items()}


TITLES = {"scalar": "one scale per layer (Eq 20)", "batch": "ordinary batch norm"}


def _apart(rows: Rows) -> Rows:
    """Return by how much the first layer's scale stands out, in three ways.

    ``excess``: its distance from the mean of all other layers, less the greatest
    such distance of another layer. ``beyond_all``: its distance from the nearest end
    of the range of all others; negative inside. ``jump``: its distance from the second
    layer, less the greatest distance between later neighbours.
    """
    scales: dict[tuple, dict[int, Row]] = {}
    for row in rows.where(quantity="scale"):
        key = tuple(row[k] for k in (*RUN, "step"))
        scales.setdefault(key, {})[row["layer"]] = row
    return Rows(
        {**by_layer[1], "quantity": quantity, "value": value, "error": 1e-12}
        for by_layer in scales.values()
        if len(by_layer) > 2
        for quantity, value in _distances(by_layer).items()
    )


def _distances(by_layer: Mapping[int, Row]) -> dict[str, float]:
    values = {layer: row["value"] for layer, row in by_layer.items()}
    total, count = sum(values.values()), len(values)
    gaps = {n: abs(v - (total - v) / (count - 1)) for n, v in values.items()}
    first, *rest = (values[layer] for layer in sorted(values))
    steps = [abs(a - b) for a, b in pairwise((first, *rest))]
    return {
        "jump": steps[0] - max(steps[1:]),
        "excess": gaps.pop(1) - max(gaps.values()),
        "beyond_all": max(first - max(rest), min(rest) - first),
    }


def stands_out(quantity: str, title: str) -> Callable[[str], Select]:
    """Make the selection of how far the first layer stands out."""
    rows = measured(quantity).out_of(_apart).called(title)
    return lambda norm: rows.at(norm=norm)


def ends(norm: str) -> Asides:
    """Make asides: the scale of every layer at the end of training."""

    def read(both: PredictedAndMeasured) -> dict[str, Number]:
        rows = scale(norm)(both)
        rows = rows.where(horizon="short", readout=1.0, rate=0.01)
        ends = rows.where(step=max(rows.levels("step"), default=0))
        return {
            f"scale at the end, layer {layer}": _number(
                ends.where(layer=layer).values()
            )
            for layer in rows.levels("layer")
        }

    return read


def deviations(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return the deviation of every layer at the start."""
    rows = both.measured.where(quantity="deviation")
    return {
        f"deviation, layer {layer}": _number(rows.where(layer=layer).values())
        for layer in rows.levels("layer")
    }


def _number(values: np.ndarray) -> Number:
    """Return a mean over networks with its standard error."""
    if len(values) < 2:
        return Number(float(values.mean()))
    return Number(float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5)


def _of_theory(both: PredictedAndMeasured) -> PredictedAndMeasured:
    """Return increments divided by those of the wide limit."""
    theory = {
        row["layer"]: row["value"] for row in both.predicted.where(quantity="increment")
    }
    rows = [
        {**row, "quantity": "share", "value": row["value"] / theory[row["layer"]]}
        for row in both.measured.where(quantity="increment")
    ]
    return PredictedAndMeasured(both.predicted, Rows(rows))


def wide_increments(both: PredictedAndMeasured) -> Judgement:
    """Judge whether increments are those of the wide limit."""
    test = at_each(
        "layer",
        measured("share").called("increment over that of the wide limit"),
        lambda rows: inside(mean(rows), AS_WIDE),
    )
    return test(_of_theory(both))


LATE = Choice(
    what="late in training: its second half",
    why="theorem 3 speaks of scales at rest, which they are not at first",
)
# Of a mean of scales, the distance from a line through 20 updates is at most 8e-4 with
# one scale a layer, and 6e-6 with one a unit, which has a fiftieth of the gradient.
MORE = {
    "scalar": above(5e-3, source="ours", why="six times the noise of a reading"),
    "batch": above(5e-5, source="ours", why="eight times the noise of a reading"),
}

# What lies higher: a line as a whole, or each of its points.
LINES: dict[str, Callable[[Make], Make]] = {
    "mean of layers": lambda make: make,
    "every layer": every_layer,
}

WORDS = {
    "increment": "increase of the mean square by a layer",
    "deviation": "standard deviation",
}
CLAIMS = (
    erratum(
        name="squares-add-up",
        place="Section 4.1, after equation 20",
        statement="With $\\lambda_l = 1$ the mean square of a unit grows by one a "
        "layer.",
        printed="$E[N_{l+1}(x)_j^2] = 1 + E[N_l(x)_j^2]$",
        corrected="ReLU outputs have a mean and $N_l \\geq 0$: $q' = q + "
        "q/(2\\sigma^2) + (2M/\\sigma)\\sqrt{q/2\\pi}$ with $q = E N_l^2$, $M = E "
        "N_l$, which grows faster and faster",
        test=at_each(
            "layer", measured("increment"), lambda rows: inside(mean(rows), AS_WIDE)
        ),
        corrected_test=wide_increments,
        rival="increments of $\\pi/(\\pi-1)$, without the product of the means",
    ),
    Claim(
        name="deviations-grow",
        place="Section 4.1",
        statement="At the start the deviation $\\sigma_l$ of the ReLU outputs "
        "increases with depth.",
        test=trend(measured("deviation"), over="layer", slope_in=above(0)),
        rival="deviations that level off",
        choices=(
            Choice(
                what="increases: the slope of $\\log\\sigma_l$ over $\\log l$ over all "
                "layers",
                why="from one layer to the next it need not",
            ),
        ),
        asides=deviations,
    ),
    Claim(
        name="scales-grow",
        place="Section 1, section 4.2",
        statement="The scales $|\\lambda_l|$ of layers with a skip grow as training "
        "progresses: they end above their start.",
        test=over_trainings(
            by_norm(every_layer(grown), skipped, ", every layer")
            | by_norm(grown, skipped, ", mean of layers")
        ),
        rival="scales that end where they began, or lower",
        asides=ends("scalar"),
        departures=ONE_WIDTH,
    ),
    Claim(
        name="later-stages-higher",
        place="Figure 1(d), caption; section 4.2",
        statement="The increase is steady: later stages of training lie higher.",
        test=over_trainings(
            {
                f"{TITLES[norm]}, {lines}": (skipped(norm), make(steady(by)))
                for lines, make in LINES.items()
                for norm, by in MORE.items()
            },
            quarters=False,
        ),
        rival="scales that fall first and rise later",
        choices=(
            Choice(
                what="stages: four equal parts of the updates",
                why="the paper does not say at which steps its lines are drawn",
            ),
        ),
        departures=ONE_WIDTH,
    ),
    Claim(
        name="first-layer-differs",
        place="Section 4.2, figure 1(d)",
        statement="The first layer, which cannot be skipped, behaves differently from "
        "the other layers.",
        test=over_trainings(
            by_norm(
                at_the_end,
                stands_out("beyond_all", "distance of the first from all others"),
                ", outside of the range of all others",
            )
            | by_norm(
                at_the_end,
                stands_out("excess", "distance of the first, less that of another"),
                ", furthest from the mean of the others",
            )
            | by_norm(
                at_the_end,
                stands_out("jump", "distance from the second, less that of neighbours"),
                ", further from its neighbour than any other",
            )
        ),
        rival="a scale that is no further from the rest than that of another layer",
        choices=(
            Choice(
                what="differently: its scale stands out at the end of training",
                why="all scales start at 1; where they rise or fall with depth an end "
                "is outermost by that alone, and so its neighbour is read too",
            ),
        ),
        asides=ends("scalar"),
        departures=ONE_WIDTH,
    ),
    Claim(
        name="unskipped-scale-grows",
        place="Section 4.2, after theorem 3",
        statement="$|\\lambda_l|$ increases for layers that have no skip: here the "
        "first.",
        test=over_trainings(by_norm(grown, lambda norm: scale(norm, layer=1))),
        rival="a first scale that shrinks",
        departures=(
            *ONE_WIDTH,
            "Eq 20 normalises from the second layer on, these networks the first too",
            "scales are not at rest, as theorem 3 assumes",
        ),
    ),
    beyond(
        name="scales-grow-late",
        place="Beside figure 1(d)",
        statement="Late in training the scale of every layer with a skip grows.",
        test=over_trainings(
            by_norm(every_layer(lambda rows: grown(rows, 0.5)), skipped)
        ),
        rival="some layers that still shrink",
        choices=(LATE,),
    ),
)
