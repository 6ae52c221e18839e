"""Claims of figure 2 and section 4.1 on weight norms and depth."""

from collections.abc import Callable

from theodolite.core import (
    Claim,
    Judgement,
    Number,
    PredictedAndMeasured,
    ReadAs,
    Test,
    below,
    each,
    mean,
    readings,
    trend,
    undecided,
)

from ..shared.cifar_tables import NORM, SHRINKAGE
from .config import PAPER_EPOCHS

FALLING = below(0)


def by_length(make: Callable[[int], Test]) -> Test:
    """Judge networks by how long they trained, the longest first; each is a reading."""

    def test(both: PredictedAndMeasured) -> Judgement:
        lengths = NORM(both).levels("epochs")[::-1]
        if not lengths:
            return undecided("no network was trained to the end", missing=True)
        if len(lengths) == 1:
            return make(lengths[0])(both)
        listed = []
        for epochs in lengths:
            depths = ", ".join(map(str, NORM.at(epochs=epochs)(both).levels("depth")))
            what = f"Networks of depths {depths} after {epochs} epochs."
            source = "figure 2" if epochs == PAPER_EPOCHS else "ours: deeper, for less"
            listed.append(ReadAs(f"{epochs} epochs", what, source, make(epochs)))
        return readings(*listed)(both)

    return test


def at_the_end(epochs: int) -> Test:
    """Judge whether norms fall with depth after the last epoch."""
    return trend(
        NORM.at(epochs=epochs, epoch=epochs).called("norm at the end"),
        over="depth",
        slope_in=FALLING,
        name="exponent of the norm in depth, at the end",
    )


def throughout(epochs: int) -> Test:
    """Judge whether norms fall with depth after every epoch."""
    norms = NORM.at(epochs=epochs)

    def after(epoch: int) -> Test:
        return trend(norms.at(epoch=epoch), over="depth", slope_in=FALLING)

    return each("epoch", norms, after, where=lambda epoch: epoch > 0)


def around_zero(epochs: int) -> Test:
    """Judge whether the share of the initial norm that is left falls with depth."""
    return trend(
        SHRINKAGE.at(epochs=epochs),
        over="depth",
        slope_in=FALLING,
        name="exponent of end over start in depth",
    )


def _shares(both: PredictedAndMeasured) -> dict[str, Number | float | int]:
    """Return the mean share at each depth."""
    numbers = {}
    for epochs in SHRINKAGE(both).levels("epochs")[::-1]:
        rows = SHRINKAGE.at(epochs=epochs)
        for depth in rows(both).levels("depth"):
            share = mean(rows.at(depth=depth))(both)
            name = "norm at the end over that at the start, "
            name += f"depth {depth}, {epochs} epochs"
            numbers[name] = Number(share.value, share.error)
    return numbers


CLAIMS = (
    Claim(
        name="deeper-smaller-at-the-end",
        place="Figure 2, section 4.1",
        statement="The deeper a residual network is, the smaller is the mean "
        "Frobenius norm of its weights when training ends.",
        test=by_length(at_the_end),
        rival="norms that do not depend on depth, as at the start",
    ),
    Claim(
        name="deeper-smaller-throughout",
        place="Figure 2, section 4.1",
        statement="The mean norm is smaller for deeper networks during training too.",
        test=by_length(throughout),
        rival="curves of different depths that cross",
    ),
    Claim(
        name="training-ends-around-zero",
        place="Section 4.1",
        statement="As the network becomes deeper, training tends to end up around "
        "zero: the norm at the end over that at the start falls with depth.",
        test=by_length(around_zero),
        rival="the same share of the initial norm left at every depth",
        asides=_shares,
    ),
)
