"""What section 4.1 and figure 1(d) claim of the scales of batch normalisation."""

from itertools import pairwise

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    Kind,
    Roads,
    Rows,
    Select,
    Test,
    above,
    alike,
    all_of,
    below,
    difference,
    each,
    every,
    inside,
    mean,
    measured,
    near,
    nothing,
    ordered,
    some,
    trend,
)

SKIPPED = "layers with a skip"
APART = 0.05
WIDE = "of widths and samples in the hundreds, each a few parts in a hundred"


def scale(norm: str, **labels: int) -> Select:
    """Select the scales' magnitudes of a kind of network."""
    return measured("scale", None, norm=norm, **labels)


def skipped(norm: str, **labels: int) -> Select:
    """Select those of layers with a skip, which is all but the first."""
    rows = measured("scale", lambda row: row["layer"] > 1, norm=norm, **labels)
    return rows.called(f"scale of {SKIPPED}")


def _ends(roads: Roads, norm: str) -> list[int]:
    return scale(norm)(roads).levels("stage")


def grown(rows: Select, norm: str, since: int = 0) -> Test:
    """Judge whether magnitudes are greater at the end than at an earlier stage.

    Args:
        rows: Whose.
        norm: Kind of the networks.
        since: Place of the earlier stage in the list of all.
    """

    def test(roads: Roads) -> Judgement:
        stages = _ends(roads, norm)
        if len(stages) < 2:
            return nothing("fewer than two stages were read")
        first, last = stages[since], stages[-1]
        return ordered(rows.at(stage=first), rows.at(stage=last))(roads)

    return test


def every_layer_grown(norm: str, since: int) -> Test:
    """Judge whether the scale of every layer with a skip is greater at the end."""
    return each(
        "layer",
        skipped(norm),
        lambda layer: grown(scale(norm, layer=layer), norm, since),
        name="growth by layer",
    )


def higher_lines(norm: str) -> Test:
    """Judge whether each stage lies above the one before, on average over layers."""

    def test(roads: Roads) -> Judgement:
        stages = _ends(roads, norm)
        if len(stages) < 2:
            return nothing("fewer than two stages were read")
        rows = skipped(norm)
        pieces = [
            ordered(
                rows.at(stage=a), rows.at(stage=b), name=f"rise from stage {a} to {b}"
            )(roads)
            for a, b in pairwise(stages)
        ]
        return all_of(pieces, "every stage above the one before")

    return test


def first_differs(norm: str) -> Test:
    """Judge whether the first layer's scale ends away from the mean of the others."""

    def test(roads: Roads) -> Judgement:
        stages = _ends(roads, norm)
        if not stages:
            return nothing("no network was read")
        gap = difference(
            scale(norm, layer=1, stage=stages[-1]), skipped(norm, stage=stages[-1])
        )
        why = "a twentieth of the starting scale, which a figure would show"
        return some(
            inside(gap, above(APART, source="ours", why=why)),
            inside(gap, below(-APART, source="ours", why=why)),
        )(roads)

    return test


def _of_theory(roads: Roads) -> Roads:
    """Put increments in units of those of the wide limit."""
    theory = {
        row["layer"]: row["value"]
        for row in roads.predicted.where(quantity="increment")
    }
    rows = [
        {**row, "quantity": "share", "value": row["value"] / theory[row["layer"]]}
        for row in roads.measured.where(quantity="increment")
    ]
    return Roads(roads.predicted, Rows(rows))


def wide_increments(roads: Roads) -> Judgement:
    """Judge whether increments are those of the wide limit."""
    margin = near(1, 0.1, source="ours", why=WIDE)
    return each(
        "layer",
        measured("share"),
        lambda layer: inside(mean(measured("share", layer=layer)), margin),
        name="increment over that of the wide limit",
    )(_of_theory(roads))


PRINTED = each(
    "layer",
    measured("increment"),
    lambda layer: inside(
        mean(measured("increment", layer=layer)), alike(0.1, WIDE, centre=1.0)
    ),
)
LATE = Choice(
    what="late in training: from the third stage before the last on",
    why="theorem 3 speaks of scales at rest, which they are not at first",
)
SCALES = Choice(
    what="of ordinary batch normalisation, the mean magnitude over a layer's units",
    why="the paper has one number a layer",
)

CLAIMS = (
    Claim(
        name="squares-add-up",
        place="Section 4.1, after equation 20",
        kind=Kind.ERRATUM,
        statement=(
            "With $\\lambda_l = 1$ the mean square of a unit grows by one a layer."
        ),
        printed="$E[N_{l+1}(x)_j^2] = 1 + E[N_l(x)_j^2]$",
        corrected=(
            "ReLU outputs have a mean and $N_l \\geq 0$: "
            "$q' = q + q/(2\\sigma^2) + (2M/\\sigma)\\sqrt{q/2\\pi}$ with "
            "$q = E N_l^2$, $M = E N_l$, which grows faster and faster"
        ),
        test=PRINTED,
        corrected_test=wide_increments,
        rival="increments of $\\pi/(\\pi-1)$, without the product of the means",
    ),
    Claim(
        name="deviations-grow",
        place="Section 4.1",
        statement=(
            "At the start the deviation $\\sigma_l$ of the ReLU outputs increases with "
            "depth."
        ),
        test=trend(
            measured("deviation", lambda row: row["layer"] > 1),
            over="layer",
            slope_in=above(0),
        ),
        rival="deviations that level off",
        choices=(
            Choice(
                what="from the second layer on",
                why="equation 20 is for these; the first reads the inputs",
            ),
        ),
    ),
    Claim(
        name="scales-grow",
        place="Section 1, section 4.2",
        statement=(
            "The scales grow as training progresses: their magnitudes, averaged over "
            "the layers with a skip, end above their start."
        ),
        test=grown(skipped("scalar"), "scalar"),
        rival="scales that end where they began, or lower",
    ),
    Claim(
        name="later-stages-higher",
        place="Figure 1(d), caption; section 4.2",
        statement=(
            "The increase is steady: later stages of training lie higher, each above "
            "the one before."
        ),
        test=higher_lines("scalar"),
        rival="scales that fall first and rise later",
    ),
    Claim(
        name="first-layer-differs",
        place="Section 4.2, figure 1(d)",
        statement=(
            "The first layer, which cannot be skipped, behaves differently from the "
            "other layers."
        ),
        test=first_differs("scalar"),
        rival="a scale like those of the other layers",
    ),
    Claim(
        name="unskipped-scale-grows",
        place="Section 4.2, after theorem 3",
        statement=(
            "$|\\lambda_l|$ increases for layers that have no skip: here the first."
        ),
        test=grown(scale("scalar", layer=1), "scalar"),
        rival="a first scale that shrinks",
    ),
    Claim(
        name="scales-grow-late",
        place="Beside figure 1(d)",
        kind=Kind.BEYOND,
        statement="Late in training the scale of every layer with a skip grows.",
        test=every_layer_grown("scalar", -3),
        rival="some layers that still shrink",
        choices=(LATE,),
    ),
    Claim(
        name="standard-scales-grow",
        place="Beside figure 1(d)",
        kind=Kind.BEYOND,
        statement=(
            "With ordinary batch normalisation the scales, averaged over the layers "
            "with a skip, end above their start, and late in training each one grows."
        ),
        test=every(grown(skipped("batch"), "batch"), every_layer_grown("batch", -3)),
        rival="scales that the shifts and the single units make needless",
        choices=(SCALES, LATE),
    ),
    Claim(
        name="standard-first-layer-differs",
        place="Beside figure 1(d)",
        kind=Kind.BEYOND,
        statement=(
            "With ordinary batch normalisation, too, the first layer's scale ends away "
            "from those of the others."
        ),
        test=first_differs("batch"),
        rival="a scale like those of the other layers",
        choices=(SCALES,),
    ),
)
