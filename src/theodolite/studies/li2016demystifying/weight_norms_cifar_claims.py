"""What figure 2 claims of weight norms and depth, judged from rows."""

import numpy as np

from theodolite.core import (
    Claim,
    Estimate,
    Number,
    Rows,
    Verdict,
    estimate,
    holds_if,
    undecided,
)
from theodolite.studies.li2016demystifying.cifar_judging import (
    complete,
    direction,
    longest,
    number,
    slopes,
)

Numbers = dict[str, Number | float | int]


def _two_shortcut(measured: Rows) -> tuple[Rows, list[int]]:
    """Return the norms of finished 2-shortcut networks, and their depths."""
    rows = longest(measured).where(quantity="norm", shortcut=2, status="finished")
    return rows, complete(rows, "norm").levels("depth")


def _at(rows: Rows, epoch: int, depth: int) -> Number:
    return number(estimate(rows.where(epoch=epoch, depth=depth).values()))


def _last(rows: Rows) -> int:
    return max(rows.column("epoch"), default=0)


def _end(predicted: Rows, measured: Rows) -> Verdict:
    rows, depths = _two_shortcut(measured)
    last = _last(rows)
    found = slopes(rows.where(epoch=last), depths)
    if found is None:
        return undecided("fewer than two depths were trained to the end", {})
    numbers: Numbers = {"exponent of the norm in depth, at the end": number(found)}
    if (start := slopes(rows.where(epoch=0), depths)) is not None:
        numbers["the same at the start"] = number(start)
    numbers |= {f"norm at the end, depth {d}": _at(rows, last, d) for d in depths}
    numbers["seeds"] = found.n
    return _by_sign(
        direction(found),
        numbers,
        holds="the mean norm at the end falls with depth",
        fails="the mean norm at the end grows with depth",
        open_="the trend with depth is within the spread of the seeds",
    )


def _throughout(predicted: Rows, measured: Rows) -> Verdict:
    rows, depths = _two_shortcut(measured)
    epochs = [e for e in rows.levels("epoch") if e > 0]
    found = {e: slopes(rows.where(epoch=e), depths) for e in epochs}
    # Falling has to be seen at every epoch, each at the full level; growth at any one
    # would do, so there the level is shared.
    falls = sum(direction(found[e]) < 0 for e in epochs)
    grows = sum(direction(found[e], comparisons=len(epochs)) > 0 for e in epochs)
    exponents = [s.mean for s in found.values() if s is not None]
    if not exponents:
        return undecided("fewer than two depths were trained to the end", {})
    numbers: Numbers = {
        "epochs": len(epochs),
        "epochs at which the norm falls with depth": falls,
        "epochs at which it grows with depth": grows,
        "least exponent": min(exponents),
        "largest exponent": max(exponents),
    }
    sign = -1 if falls == len(epochs) else int(grows > 0)
    return _by_sign(
        sign,
        numbers,
        holds="after every epoch the mean norm falls with depth",
        fails="after some epochs the mean norm grows with depth",
        open_="after some epochs the trend is within the spread of seeds",
    )


def _towards_zero(predicted: Rows, measured: Rows) -> Verdict:
    rows, depths = _two_shortcut(measured)
    if not depths:
        return undecided("no network was trained to the end", {})
    last, numbers, shrunk = _last(rows), {}, []
    for depth in depths:
        change = _log_ratio(rows.where(depth=depth), last)
        factor = float(np.exp(change.mean))
        error = factor * change.stderr if change.n > 1 else None
        name = f"norm at the end over that at the start, depth {depth}"
        numbers[name] = Number(factor, error)
        shrunk.append(direction(change, comparisons=len(depths)))
    sign = -1 if all(s < 0 for s in shrunk) else int(any(s > 0 for s in shrunk))
    return _by_sign(
        sign,
        numbers,
        holds="at every depth weights end nearer zero than they began",
        fails="at some depth weights end farther from zero than they began",
        open_="the change is within the spread of the seeds",
    )


def _log_ratio(rows: Rows, last: int) -> Estimate:
    start, end = rows.where(epoch=0), rows.where(epoch=last)
    before = dict(zip(start.column("trial"), start.values(), strict=True))
    after = dict(zip(end.column("trial"), end.values(), strict=True))
    both = sorted(before.keys() & after.keys())
    return estimate([np.log(after[t] / before[t]) for t in both])


def _initial(predicted: Rows, measured: Rows) -> Verdict:
    """Compare the norms at the start with the closed form, in its own spread."""
    worst, count = 0.0, 0
    for row in predicted.where(quantity="norm"):
        labels = {"source": row["source"], "depth": row["depth"]}
        found = measured.where(quantity="norm", epoch=0, **labels).values()
        count += len(found)
        if len(found):
            worst = max(worst, float(np.abs(found - row["value"]).max()) / row["error"])
    if not count:
        return undecided("no network was measured at the start", {})
    return holds_if(
        worst < 5,
        {"networks": count, "largest deviation, in standard deviations": worst},
        holds="norms at the start are those of He's initialisation, at every depth",
        fails="norms at the start are not those of He's initialisation",
    )


def _by_sign(
    sign: int, numbers: Numbers, *, holds: str, fails: str, open_: str
) -> Verdict:
    if sign == 0:
        return undecided(open_, numbers)
    return holds_if(sign < 0, numbers, holds=holds, fails=fails)


# Judged on this run and on the committed one.
BOTH = (
    Claim(
        name="norms-start-equal",
        place="Section 4.1",
        statement=(
            "Weights start at He's initialisation, whose mean norm $\\sqrt{2 c_{in}}$ "
            "a layer hardly depends on depth: what depth does to norms, training does."
        ),
        check=_initial,
        rival="a start that already depends on depth",
    ),
)
# Judged on the committed run where it is there.
CLAIMS = (
    Claim(
        name="deeper-smaller-at-the-end",
        place="Figure 2, section 4.1",
        statement=(
            "The deeper a residual network is, the smaller is the mean Frobenius norm "
            "of its weights when training ends."
        ),
        check=_end,
        rival="norms that do not depend on depth, as at the start",
    ),
    Claim(
        name="deeper-smaller-throughout",
        place="Figure 2, section 4.1",
        statement=(
            "The mean norm is smaller for deeper networks during all of training too."
        ),
        check=_throughout,
        rival="curves of different depths that cross",
    ),
    Claim(
        name="training-ends-around-zero",
        place="Section 4.1",
        statement="Training moves the weights of residual networks towards zero.",
        check=_towards_zero,
        rival="weights that grow from their initial norm",
    ),
)
