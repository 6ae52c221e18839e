"""Claims of figure 2 and section 4.1 on weight norms and depth."""

from theodolite.core import (
    Claim,
    Number,
    PredictedAndMeasured,
    Test,
    below,
    each,
    mean,
    trend,
)

from ..shared.cifar_tables import END, NORM, SHRINKAGE

FALLING = below(0)


def after(epoch: int) -> Test:
    """Judge whether norms fall with depth after an epoch."""
    return trend(NORM.at(epoch=epoch), over="depth", slope_in=FALLING)


def _shares(both: PredictedAndMeasured) -> dict[str, Number | float | int]:
    """Return the mean share at each depth."""
    numbers = {}
    for depth in SHRINKAGE(both).levels("depth"):
        share = mean(SHRINKAGE.at(depth=depth))(both)
        name = f"norm at the end over that at the start, depth {depth}"
        numbers[name] = Number(share.value, share.error)
    return numbers


CLAIMS = (
    Claim(
        name="deeper-smaller-at-the-end",
        place="Figure 2, section 4.1",
        statement="The deeper a residual network is, the smaller is the mean "
        "Frobenius norm of its weights when training ends.",
        test=trend(
            END.called("norm at the end"),
            over="depth",
            slope_in=FALLING,
            name="exponent of the norm in depth, at the end",
        ),
        rival="norms that do not depend on depth, as at the start",
    ),
    Claim(
        name="deeper-smaller-throughout",
        place="Figure 2, section 4.1",
        statement="The mean norm is smaller for deeper networks during training too.",
        test=each("epoch", NORM, after, where=lambda epoch: epoch > 0),
        rival="curves of different depths that cross",
    ),
    Claim(
        name="training-ends-around-zero",
        place="Section 4.1",
        statement="As the network becomes deeper, training tends to end up around "
        "zero: the norm at the end over that at the start falls with depth.",
        test=trend(
            SHRINKAGE,
            over="depth",
            slope_in=FALLING,
            name="exponent of end over start in depth",
        ),
        rival="the same share of the initial norm left at every depth",
        asides=_shares,
    ),
)
