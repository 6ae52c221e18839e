"""Claims on the constraint on every layer: summed over samples, and per sample."""

from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Grade,
    Region,
    above,
    below,
    beyond,
    difference,
    erratum,
    every,
    exact,
    highest,
    inside,
    largest,
    lowest,
    measured,
    meets,
    ordered,
    predicted,
    smallest,
)

AT_REST = below(
    1e-4, source="ours", why="what a quasi-Newton method leaves, far below any gap"
)
MET = below(0.01, source="ours", why="a hundredth of the layer itself")
OPEN = above(0.1, source="ours", why="a tenth of the layer itself is missing")
WRITTEN = ("network", "layer", "trial")
EXACT = below(1e-9, source="rounding", why="quotients of products of four layers")
AT_LEAST_ZERO = Region(low=0.0, low_open=False)
LINEAR: dict[str, Any] = {"kind": "linear", "stage": "end"}
RELU: dict[str, Any] = {"kind": "relu", "stage": "end"}
BOTH = Choice(
    what="networks with weight normalisation and decay stand for batch-normalised ones",
    why="that is the paper's own model of batch normalisation",
)

CONSTRAINT = (
    Claim(
        name="gradient-is-an-outer-product",
        place="Equations 1, 50 and 51",
        statement="With its gates as they are, $f = a^T V_k b$ in every layer, so that "
        "$\\partial f/\\partial V_k = a b^T$ and $\\langle V_k, \\partial f/\\partial "
        "V_k\\rangle = f$.",
        test=every(
            meets("gradient_norm", WRITTEN, EXACT, network="random"),
            exact(measured("structural_gap")),
        ),
        rival="a gradient that sees how gates turn",
    ),
    erratum(
        name="sum-over-samples",
        place="Equations 8, 29 and 38",
        statement="At rest every layer is the weighted sum of the samples' gradients, "
        "in ReLU networks as in linear ones.",
        printed="$V_k = \\sum_n \\alpha_n\\,\\partial f_n/\\partial V_k$ for all $k$",
        corrected="so in every layer of linear networks; ReLU networks come to rest on "
        "kinks of their units, where it holds for slopes chosen between 0 and 1, as "
        "far as training got, and not for those of any one side",
        test=every(
            inside(largest(measured("sum_gap", **LINEAR)), AT_REST),
            inside(largest(measured("sum_gap", **RELU)), MET),
        ),
        corrected_test=every(
            inside(largest(measured("sum_gap", **LINEAR)), AT_REST),
            inside(
                difference(
                    measured("gated_sum_gap", **RELU),
                    measured("whole_sum_gap", **RELU),
                    log=True,
                    name="log10 gap with slopes chosen at kinks less one side's",
                ),
                below(-0.3, source="ours", why="less than half of the gap is left"),
            ),
            ordered(
                measured("gated_sum_gap", **RELU),
                measured("control_sum_gap", **RELU),
                log=True,
                name="log10 gap with as many slopes chosen elsewhere less at kinks",
            ),
        ),
        rival="so many slopes that any of them would close the gap",
        choices=(
            BOTH,
            Choice(
                what="inputs of units below 0.0001 of a layer's mean are at a kink",
                why="steps of descent cross a kink again and again by about as much",
            ),
        ),
        grade=Grade.LOOSE,
    ),
    erratum(
        name="every-sample",
        place="Equations 11, 37, 40, 48 and 52; lemma 1, items 3 and 4",
        statement="At rest every layer is proportional to the gradient of each "
        "sample's output: $V_k f_n = \\partial f_n/\\partial V_k$ for all $k$ and $n$.",
        printed="$V_k f_n = \\partial f_n/\\partial V_k\\ \\forall k, n$",
        corrected="impossible: $\\partial f_n/\\partial V_1 = a_n x_n^T$, so that the "
        "root mean square of what is missing, over $|f_n|$, is at least $\\sqrt{1 - "
        "\\lambda_{max}}$ of the mean of $\\hat x_n \\hat x_n^T$ in the first layer of "
        "any network, unless all inputs are collinear; it holds in the other layers of "
        "linear networks (equations 11 and 52 also lack a transpose of the last "
        "factor)",
        test=inside(
            largest(
                measured("sample_gap", stage="end").called("gap of equation 40 at rest")
            ),
            MET,
        ),
        corrected_test=every(
            inside(
                lowest(
                    measured("sample_gap", layer=1), less=predicted("first_layer_floor")
                ),
                AT_LEAST_ZERO,
            ),
            inside(smallest(predicted("first_layer_floor")), OPEN),
            inside(
                largest(
                    measured(
                        "sample_gap", lambda row: row["layer"] > 1, **LINEAR
                    ).called("gap in later layers of linear networks")
                ),
                AT_REST,
            ),
        ),
        rival="a gap that vanishes with longer training",
        choices=(BOTH,),
    ),
    Claim(
        name="gates-can-be-dropped",
        place="Appendix H, assumptions",
        statement="What satisfies equation 52 at an input with the gates of its units "
        "does so without them; the converse is not true.",
        test=every(
            exact(measured("constraint_gap", network="chain, positive")),
            exact(measured("constraint_gap", network="chain, positive, ungated")),
            exact(measured("constraint_gap", network="chain, signed, ungated")),
            inside(smallest(measured("constraint_gap", network="chain, signed")), OPEN),
        ),
        rival="gates that matter in both directions, or in none",
    ),
    Claim(
        name="recurrent-is-forward",
        place="Appendix H.1",
        statement="A linear recurrent network of $T$ steps, which shares its weights, "
        "is identical to the network of $T$ layers without sharing.",
        test=inside(
            highest(
                measured("function_distance", kind="linear").called(
                    "relative distance of held-out outputs"
                )
            ),
            MET,
        ),
        rival="shared weights that can do less, as in ReLU networks",
        choices=(
            Choice(
                what="identical is: outputs on held-out digits agree to a hundredth",
                why="weights of two trainings are never the same",
            ),
            Choice(
                what="linear networks",
                why="appendix H assumes them throughout; others are judged apart",
            ),
        ),
    ),
    beyond(
        name="relu-recurrent-differs",
        place="Beside appendix H.1",
        statement="The premise of the paper is not met: layers that are not shared do "
        "not become alike, and linear networks agree since one regularised "
        "least-squares solution is within reach of both. ReLU networks that share "
        "compute another function and end at a higher objective.",
        test=every(
            inside(
                largest(measured("layer_cosine", stage="end")),
                below(0.5, source="ours", why="half way to layers that are the same"),
            ),
            inside(
                lowest(measured("function_distance", kind="relu")),
                above(0.01, source="ours", why="a hundredth, as for linear networks"),
            ),
            inside(
                difference(
                    measured("objective", kind="relu", stage="recurrent"),
                    measured("objective", kind="relu", stage="end"),
                    name="objective of shared less that of free layers",
                ),
                above(0),
            ),
        ),
        rival="layers that become alike, which would explain it",
    ),
)
