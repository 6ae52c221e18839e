"""Claims of figure 8 and the text about it."""

import math
from dataclasses import replace

from theodolite.core import (
    Claim,
    PredictedAndMeasured,
    Quantity,
    Select,
    above,
    below,
    beyond,
    every,
    inside,
    mean,
    measured,
    trend,
)

from ..shared.final_losses.reading import (
    ALL_DEPTHS,
    FROM_EIGHT,
    NO_DIVERGENCE,
    RATES_MATTER,
    any_rate,
    deep,
    deepest,
    faster,
    gap,
    lowest,
    on_losses,
    reference,
)

PLAIN = ("xavier", "orthogonal")


def loss(network: str) -> Select:
    """Select the final losses of a network."""
    return measured("loss", network=network).called("final loss")


def below_linear(both: PredictedAndMeasured) -> Quantity:
    """Read the deepest losses over the least loss of a linear map, in decades."""
    read = mean(loss("two_shortcut").keeping(deepest), log=True)
    deepest_loss, best = read(both), math.log10(reference(both, "linear_optimum"))
    name = "log10 final loss over that of the best linear map, deepest 2-shortcut"
    return replace(deepest_loss, name=name, value=deepest_loss.value - best)


CLAIMS = (
    Claim(
        name="deeper-relu-is-better",
        place="Figure 8 left, section 5.3.1",
        statement="2-shortcut networks find the smaller optima of deeper ReLU "
        "networks as easily as without nonlinearities: their final losses fall with "
        "depth.",
        test=on_losses(trend(loss("two_shortcut"), over="depth", slope_in=below(0))),
        rival="a loss that rises with depth, as without shortcuts",
    ),
    beyond(
        name="relu-beats-linear",
        place="Section 5.3.1; the comparison is ours",
        statement="Nonlinear units are put to use: the deepest 2-shortcut networks "
        "end below the least loss of any linear map.",
        test=on_losses(inside(below_linear, below(0))),
        rival="nonlinear units that are never put to use",
    ),
    Claim(
        name="plain-relu-fails",
        place="Figure 8 left, section 5.3.1",
        statement="Xavier and orthogonal networks with ReLUs have difficulties "
        "finding the optima of deeper networks: their losses rise with depth in deep "
        "networks, and the deepest end above 2-shortcut ones.",
        test=on_losses(
            every(
                *(
                    trend(
                        measured("loss", deep, network=name).called("final loss"),
                        over="depth",
                        slope_in=above(0),
                    )
                    for name in PLAIN
                ),
                *(
                    inside(gap(name, "two_shortcut", deepest=True), above(0))
                    for name in PLAIN
                ),
            )
        ),
        rival="losses that fall with depth, as for 2-shortcut networks",
        choices=(FROM_EIGHT,),
    ),
    Claim(
        name="two-shortcut-lowest-relu",
        place="Abstract, figure 8 left",
        statement="With ReLUs too, 2-shortcut networks with small weights end with "
        "lower losses than Xavier and orthogonal ones.",
        test=lowest(PLAIN),
        rival="a plain network that ends as low on the same seeds",
        choices=(ALL_DEPTHS,),
    ),
    Claim(
        name="plain-relu-any-rate",
        place="Figure 8, caption",
        statement="At depth 64 the final losses of Xavier and orthogonal ReLU "
        "networks are basically the same at all learning rates.",
        test=every(any_rate(name, 64) for name in PLAIN),
        rival="losses that depend on the rate, as in shallow networks",
        choices=(NO_DIVERGENCE,),
    ),
    beyond(
        name="two-shortcut-higher-rates-relu",
        place="Figure 8 right; the paper's words are on linear networks",
        statement="With ReLUs too, 2-shortcut takes higher learning rates in deep "
        "networks than Xavier and orthogonal.",
        test=faster(PLAIN),
        rival="equal best rates",
        choices=(FROM_EIGHT, RATES_MATTER),
    ),
)
