"""Claims of section 4.1 and figure 1(d) on the scales of batch normalisation."""

from collections.abc import Callable

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
    Test,
    above,
    at_each,
    beyond,
    erratum,
    every,
    inside,
    mean,
    measured,
    our_margin,
    trend,
    undecided,
)

from ..shared.rows import grown, rising

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


def every_layer_grown(norm: str, since: int) -> Test:
    """Judge whether the scale of every layer with a skip is greater at the end."""
    return at_each(
        "layer", skipped(norm), lambda rows: grown(rows, since), name="growth by layer"
    )


def _apart(rows: Rows) -> Rows:
    """Return how much further the first layer's scale is from the rest than any other.

    For each layer, the rest is the mean of all other layers.
    """
    scales: dict[tuple, dict[int, Row]] = {}
    for row in rows.where(quantity="scale"):
        key = row["norm"], row["trial"], row["stage"]
        scales.setdefault(key, {})[row["layer"]] = row
    return Rows(_excess(by_layer) for by_layer in scales.values() if len(by_layer) > 2)


def _excess(by_layer: dict[int, Row]) -> Row:
    total, count = sum(row["value"] for row in by_layer.values()), len(by_layer)
    gaps = {
        layer: abs(row["value"] - (total - row["value"]) / (count - 1))
        for layer, row in by_layer.items()
    }
    return {
        **by_layer[1],
        "quantity": "excess",
        "value": gaps.pop(1) - max(gaps.values()),
        "error": 4 * max(row["error"] for row in by_layer.values()),
    }


def first_differs(norm: str) -> Test:
    """Judge whether the first layer's scale ends furthest from the rest."""

    def test(both: PredictedAndMeasured) -> Judgement:
        stages = scale(norm)(both).levels("stage")
        if not stages:
            return undecided("no network was read")
        rows = measured("excess", norm=norm, stage=stages[-1]).out_of(_apart)
        title = "distance of the first layer, less the greatest of another"
        return inside(mean(rows.called(title)), above(0))(both)

    return test


def ends(norm: str) -> Asides:
    """Make asides: the scale of every layer at the end of training."""

    def read(both: PredictedAndMeasured) -> dict[str, Number]:
        rows = scale(norm)(both)
        ends = rows.where(stage=max(rows.levels("stage")))
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
        measured("share"),
        lambda rows: inside(mean(rows), AS_WIDE),
        name="increment over that of the wide limit",
    )
    return test(_of_theory(both))


LATE = Choice(
    what="late in training: from the third stage before the last on",
    why="theorem 3 speaks of scales at rest, which they are not at first",
)
APART = Choice(
    what="differently: at the end its scale is further from the mean of all others "
    "than that of any other layer is, network by network",
    why="any two layers differ; one stands out if it is the furthest from the rest",
)
SCALES = Choice(
    what="of ordinary batch normalisation, the mean magnitude over a layer's units",
    why="the paper has one number a layer",
)

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
        statement="The scales $|\\lambda_l|$ grow as training progresses: that of "
        "every layer with a skip ends above its start.",
        test=every_layer_grown("scalar", 0),
        rival="scales that end where they began, or lower",
        choices=(
            Choice(
                what="every layer, not their mean",
                why="the paper speaks of $|\\lambda_l|$ and plots it layer by layer",
            ),
        ),
        asides=ends("scalar"),
    ),
    beyond(
        name="scales-grow-on-average",
        place="Beside figure 1(d)",
        statement="Averaged over the layers with a skip the scales end above their "
        "start.",
        test=grown(skipped("scalar")),
        rival="scales that end where they began, or lower",
    ),
    Claim(
        name="later-stages-higher",
        place="Figure 1(d), caption; section 4.2",
        statement="The increase is steady: later stages of training lie higher, each "
        "above the one before.",
        test=rising(skipped("scalar"), "stage", "every stage above the one before"),
        rival="scales that fall first and rise later",
        choices=(
            Choice(
                what="stages evenly spaced in the logarithm of the step, the first "
                "after one update; a line is the mean of its layers with a skip",
                why="the paper does not say at which steps its lines are drawn, and "
                "lines may cross in single layers",
            ),
        ),
    ),
    Claim(
        name="first-layer-differs",
        place="Section 4.2, figure 1(d)",
        statement="The first layer, which cannot be skipped, behaves differently from "
        "the other layers.",
        test=first_differs("scalar"),
        rival="a scale that is no further from the rest than that of another layer",
        choices=(APART,),
        asides=ends("scalar"),
    ),
    Claim(
        name="unskipped-scale-grows",
        place="Section 4.2, after theorem 3",
        statement="$|\\lambda_l|$ increases for layers that have no skip: here the "
        "first.",
        test=grown(scale("scalar", layer=1)),
        rival="a first scale that shrinks",
    ),
    beyond(
        name="scales-grow-late",
        place="Beside figure 1(d)",
        statement="Late in training the scale of every layer with a skip grows.",
        test=every_layer_grown("scalar", -3),
        rival="some layers that still shrink",
        choices=(LATE,),
    ),
    beyond(
        name="standard-scales-grow",
        place="Beside figure 1(d)",
        statement="With ordinary batch normalisation the scales, averaged over the "
        "layers with a skip, end above their start, and late in training each one "
        "grows.",
        test=every(grown(skipped("batch")), every_layer_grown("batch", -3)),
        rival="scales that the shifts and the single units make needless",
        choices=(SCALES, LATE),
    ),
    beyond(
        name="standard-first-layer-differs",
        place="Beside figure 1(d)",
        statement="With ordinary batch normalisation, too, the first layer's scale "
        "ends further from the rest than that of any other layer.",
        test=first_differs("batch"),
        rival="a scale that is no further from the rest than that of another layer",
        choices=(SCALES, APART),
        asides=ends("batch"),
    ),
)
