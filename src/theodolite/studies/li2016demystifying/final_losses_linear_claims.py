"""What figure 7 and the prose on it claim."""

from theodolite.core import Claim
from theodolite.studies.li2016demystifying import final_losses_linear_judges as judges
from theodolite.studies.li2016demystifying.final_losses_judging import (
    DEEP,
    judged,
)
from theodolite.studies.li2016demystifying.final_losses_orders import (
    any_rate,
    faster,
    lowest,
)

QUANTITY = "excess"
OTHERS = ("xavier", "orthogonal", "one_shortcut", "three_shortcut")
EVERY = ("two_shortcut", *OTHERS)

CLAIMS = (
    Claim(
        name="two-shortcut-near-optimal",
        place="Figure 7 left, section 5.3.1",
        statement=(
            "The final losses of 2-shortcut linear networks stay close to optimal as "
            "the networks become deeper: within 1 % of the optimal loss at every depth."
        ),
        check=judged(QUANTITY, EVERY, judges.close),
        rival="a loss that leaves the optimum with depth, as with Xavier weights",
    ),
    Claim(
        name="two-shortcut-loss-invariant",
        place="Section 5.3.1, taken at its word; half a decade is ours",
        statement=(
            "Just as their initial condition numbers, the excess of 2-shortcut "
            "networks over the optimal loss is the same at every depth: its mean "
            "logarithms lie within half a decade."
        ),
        check=judged(QUANTITY, ("two_shortcut",), judges.invariant),
        rival="an excess that differs by decades, though all of it is small",
    ),
    Claim(
        name="two-shortcut-lowest",
        place="Abstract, figure 7 left",
        statement=(
            "2-shortcut networks end with lower losses than Xavier, orthogonal, "
            "1-shortcut and 3-shortcut ones, at every depth."
        ),
        check=judged(QUANTITY, EVERY, lambda losses: lowest(losses, OTHERS)),
        rival="another network that ends as low on the same seeds",
    ),
    Claim(
        name="orthogonal-worsens",
        place="Figure 7 left; the paper has no words on it",
        statement=(
            "Orthogonal and 1-shortcut networks, whose initial condition numbers grow "
            "with depth, end further from the optimum the deeper they are."
        ),
        check=judged(QUANTITY, ("orthogonal", "one_shortcut"), judges.worsen),
        rival="a loss that depth leaves alone",
    ),
    Claim(
        name="xavier-fails",
        place="Figure 7 left and caption; half of the zero map's excess is ours",
        statement=(
            "Xavier networks end higher the deeper they are; the deepest keep more "
            "than half of the excess of a network that outputs zero."
        ),
        check=judged(QUANTITY, ("xavier", "two_shortcut"), judges.xavier_fails),
        rival="deep Xavier networks that train at a rate of their own",
    ),
    Claim(
        name="xavier-any-rate",
        place="Figure 7, caption",
        statement=(
            "At depth 96 the final losses of Xavier networks are basically the same at "
            "all learning rates, so that none is optimal."
        ),
        check=judged(
            QUANTITY, ("xavier",), lambda losses: any_rate(losses, ["xavier"])
        ),
        rival="losses that depend on the rate, as in shallow networks",
    ),
    Claim(
        name="two-shortcut-higher-rates",
        place="Figure 7 right, section 5.3.1",
        statement=(
            "In deep networks, from 8 matrices up, 2-shortcut takes higher learning "
            "rates than Xavier, orthogonal, 1-shortcut and 3-shortcut."
        ),
        check=judged(
            QUANTITY, EVERY, lambda losses: faster(losses, OTHERS), least=DEEP
        ),
        rival="equal best rates",
    ),
    Claim(
        name="two-shortcut-rate-stays",
        place="Figure 7 right; the paper has no words on it",
        statement=(
            "The best learning rate of deep 2-shortcut networks does not fall with "
            "depth, as that of orthogonal networks does."
        ),
        check=judged(
            QUANTITY, ("two_shortcut", "orthogonal"), judges.rate_stays, least=DEEP
        ),
        rival="a best rate in inverse proportion to depth",
    ),
    Claim(
        name="one-shortcut-like-orthogonal",
        place="Section 5; half a decade is ours",
        statement=(
            "1-shortcut networks train like plain ones with orthogonal weights: final "
            "losses and best rates agree within half a decade at every depth."
        ),
        check=judged(
            QUANTITY, ("one_shortcut", "orthogonal", "two_shortcut"), judges.alike
        ),
        rival="1-shortcut networks that train like 2-shortcut ones",
    ),
    Claim(
        name="three-shortcut-stuck",
        place="Abstract, section 4.2; the rate of 0.1 is ours",
        statement=(
            "Longer shortcuts start at a flat stationary point that is hard to "
            "escape: at a rate of 0.1, at which deep 2-shortcut networks train, "
            "3-shortcut ones stay where they are."
        ),
        check=judged(
            QUANTITY, ("three_shortcut", "two_shortcut"), judges.stuck, least=DEEP
        ),
        rival="3-shortcut networks that leave the start as 2-shortcut ones do",
    ),
)
