"""What figure 3 and the prose around it claim, judged from rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from theodolite.core import (
    Claim,
    Estimate,
    Kind,
    Number,
    Rows,
    Verdict,
    estimate,
    fit_line,
    holds_if,
    undecided,
)
from theodolite.studies.li2016demystifying.judging import ALONE, largest, smallest

# A difference of means counts beyond this many of its standard errors.
SURE = 3.0
# A network is near zero while its loss is above this fraction of the first.
NEAR_ZERO = 0.98


def common_rate(measured: Rows, network: str) -> float:
    """Return the highest rate at which no run of a network diverged, at any depth."""
    ends = measured.where(quantity="final_loss", network=network)
    lost = {row["lr"] for row in ends if row["value"] is None}
    return max(rate for rate in ends.levels("lr") if rate not in lost)


def best_rate(measured: Rows, network: str, depth: int) -> float:
    """Return the rate with the least mean final loss among those that never diverge."""
    ends = measured.where(quantity="final_loss", network=network, depth=depth)
    losses = {
        float(ends.where(lr=rate).values().mean()): rate for rate in ends.levels("lr")
    }
    return losses[min(loss for loss in losses if not np.isnan(loss))]


def along(measured: Rows, network: str) -> Rows:
    """Return mean norms of all depths at the common rate."""
    rate = common_rate(measured, network)
    return measured.where(quantity="norm", network=network, lr=rate)


def final(measured: Rows, network: str) -> Rows:
    """Return the mean norms at the last step, every depth at its best rate."""
    rows = measured.where(quantity="norm", network=network)
    rows = rows.where(step=max(rows.levels("step")))
    best = {d: best_rate(measured, network, d) for d in rows.levels("depth")}
    return rows.where(lambda row: row["lr"] == best[row["depth"]])


def exponents(measured: Rows, network: str) -> np.ndarray:
    """Return each seed's exponent of the final norm against units."""
    rows = final(measured, network)
    found = []
    for trial in rows.levels("trial"):
        chosen = rows.where(trial=trial)
        units = np.log(chosen.values("depth") / 2)
        found.append(fit_line(units, np.log(chosen.values())).slope)
    return np.array(found)


@dataclass(frozen=True)
class Early:
    """A depth's root mean square norm near zero beside the theory's."""

    depth: int
    step: int
    predicted: float
    measured: Estimate


def early(predicted: Rows, measured: Rows) -> Iterator[Early]:
    """Yield, for every depth, the last step at which all its networks are near zero."""
    first = predicted.value(quantity="first_loss")
    rows = along(measured, "linear")
    for depth in rows.levels("depth"):
        here = rows.where(depth=depth)
        gone = {row["step"] for row in here if row["loss"] < NEAR_ZERO * first}
        step = max(s for s in here.levels("step") if s < min(gone, default=np.inf))
        chosen = here.where(step=step)
        rate = chosen.levels("lr")[0]
        theory = predicted.value(quantity="early_norm", lr=rate, step=step)
        yield Early(depth, step, theory, estimate(chosen.values()))


def _at(rows: Rows, depth: int) -> Estimate:
    return estimate(rows.where(depth=depth).values())


def _number(found: Estimate) -> Number:
    return Number(found.mean, found.stderr)


def _fall(shallow: Estimate, deep: Estimate) -> float:
    """Return by how many standard errors the deeper mean is smaller."""
    error = float(np.hypot(shallow.stderr, deep.stderr))
    return (shallow.mean - deep.mean) / error


def _too_few(measured: Rows) -> bool:
    return len(measured.where(quantity="norm").levels("trial")) < 2


def _ends(predicted: Rows, measured: Rows) -> Verdict:
    numbers: dict[str, Number | float] = {}
    least = np.inf
    for network in ("linear", "relu"):
        rows = final(measured, network)
        depths = rows.levels("depth")
        found = [_at(rows, depth) for depth in depths]
        for depth, each in zip(depths, found, strict=True):
            numbers[f"{network}, depth {depth}"] = _number(each)
        falls = [_fall(a, b) for a, b in pairwise(found)]
        least = min(least, *falls)
    if _too_few(measured):
        return undecided(ALONE, numbers)
    numbers["norm of a Xavier matrix"] = predicted.value(quantity="xavier_norm")
    numbers["least fall from depth to depth, in standard errors"] = least
    if abs(least) <= SURE:
        return undecided(
            "from some depth to the next norms change by less than the spread over "
            "networks",
            numbers,
        )
    return holds_if(
        least > SURE,
        numbers,
        holds="every depth ends with smaller norms than the one before it",
        fails="some depth ends with larger norms than a shallower one",
    )


def _during(predicted: Rows, measured: Rows) -> Verdict:
    if _too_few(measured):
        return undecided(ALONE, {})
    numbers: dict[str, Number | float] = {}
    worst, late = np.inf, np.inf
    for network in ("linear", "relu"):
        rows = along(measured, network)
        depths, steps = rows.levels("depth"), [s for s in rows.levels("step") if s]
        falls = {}
        for step in steps:
            found = [_at(rows.where(step=step), depth) for depth in depths]
            pairs = pairwise(found)
            falls[step] = min(_fall(a, b) for a, b in pairs)
        ordered = [step for step in steps if falls[step] > SURE]
        against = [step for step in steps if falls[step] < -SURE]
        numbers[f"{network}: steps looked at"] = len(steps)
        numbers[f"{network}: of these, every depth below the last"] = len(ordered)
        numbers[f"{network}: of these, some depth above the last"] = len(against)
        if against:
            numbers[f"{network}: last step with a depth above"] = max(against)
        worst, late = min(worst, *falls.values()), min(late, falls[steps[-1]])
    numbers["worst step, in standard errors"] = worst
    if worst >= -SURE and late <= SURE:
        return undecided("depths do not differ by more than their spread", numbers)
    return holds_if(
        worst >= -SURE,
        numbers,
        holds="no deeper network has larger norms at any step looked at",
        fails="at some step a deeper network has larger norms than a shallower one",
    )


def _early(predicted: Rows, measured: Rows) -> Verdict:
    numbers: dict[str, Number | float] = {}
    off, grown = 0.0, np.inf
    start = predicted.where(quantity="early_norm", step=0).values()[0]
    for each in early(predicted, measured):
        ratio = each.measured.mean / each.predicted
        error = each.measured.stderr / each.predicted
        name = f"measured over predicted, depth {each.depth}, step {each.step}"
        numbers[name] = Number(ratio, error)
        off, grown = max(off, abs(ratio - 1)), min(grown, each.measured.mean / start)
    numbers["least growth over the start"] = float(grown)
    return holds_if(
        off < 0.1 and grown > 1.2,
        numbers,
        holds="near zero the norms of every depth follow one law, that of the singular "
        "values of M, within a tenth",
        fails="norms near zero do not follow the law, or depend on depth",
    )


def _vanish(predicted: Rows, measured: Rows) -> Verdict:
    numbers: dict[str, Number | float] = {}
    if _too_few(measured):
        return undecided(ALONE, numbers)
    flattest, bends = -np.inf, -np.inf
    for network in ("linear", "relu"):
        rows = final(measured, network)
        depths = rows.levels("depth")
        logs = {d: np.log(rows.where(depth=d).values()) for d in depths}
        first, last = (
            estimate((logs[b] - logs[a]) / np.log(b / a))
            for a, b in (depths[:2], depths[-2:])
        )
        numbers[f"{network}: exponent over all depths"] = _number(
            estimate(exponents(measured, network))
        )
        numbers[f"{network}: from depth {depths[0]} to {depths[1]}"] = _number(first)
        numbers[f"{network}: from depth {depths[-2]} to {depths[-1]}"] = _number(last)
        flattest = max(flattest, last.mean + 2 * last.stderr)
        bends = max(bends, _fall(last, first))
    numbers["theorem 1"] = Number(-0.5)
    return holds_if(
        flattest < -0.25 and bends < SURE,
        numbers,
        holds="the norm falls as a power of depth that does not weaken; theorem 1 "
        "allows the inverse root",
        fails="the norm levels off with depth",
    )


def _singular(predicted: Rows, measured: Rows) -> Verdict:
    rank, width = (predicted.value(quantity=name) for name in ("rank", "width"))
    unit = smallest(measured, "optimum_unit")
    excess = largest(measured, "optimum_excess")
    ends = measured.where(quantity="end/unit", network="linear")
    deepest = ends.where(depth=max(ends.levels("depth"))).values()
    return holds_if(
        rank < width and unit.value > 1 - 1e-6 and excess.value < 1e-6,
        {
            "rank of the optimal map": Number(rank),
            "width": Number(width),
            "least norm of the last unit at an optimum, over depths": unit,
            "largest excess loss there": excess,
            "largest unit norm of the deepest trained networks": Number(
                float(deepest.max()), float(np.ptp(deepest))
            ),
        },
        holds="the only optimal linear map loses a dimension, so that at an optimum of "
        "any depth some unit has norm 1 or more",
        fails="an optimum with small units exists, or none was reached",
    )


CLAIMS = (
    Claim(
        name="norms-fall-with-depth",
        place="Figure 3, section 4.1",
        statement=(
            "The deeper a 2-shortcut network, the smaller the mean Frobenius norm of "
            "its matrices when training ends, without and with ReLU at mid."
        ),
        check=_ends,
        rival="norms that do not depend on depth",
    ),
    Claim(
        name="norms-fall-during-training",
        place="Figure 3, section 4.1",
        statement=(
            "The deeper a 2-shortcut network, the smaller its mean norm during "
            "training, too."
        ),
        check=_during,
        rival="a deeper network with larger norms at some step",
    ),
    Claim(
        name="early-growth-is-depth-free",
        place="Theorem 2.2 applied to figure 3, left",
        statement=(
            "Near zero all depths leave alike: along the singular vectors of $M$ the "
            "matrices grow by $1 \\pm \\eta s_k$ a step."
        ),
        check=_early,
        rival="growth that depends on depth",
    ),
    Claim(
        name="norms-vanish",
        place="Section 2, theorem 1, observed in figure 3",
        statement=(
            "The norms of the solutions found vanish as depth grows; theorem 1 allows "
            "$R^{-1/2}$ for $R$ units."
        ),
        check=_vanish,
        rival="norms that level off above zero",
    ),
    Claim(
        name="linear-optimum-is-singular",
        place="Section 2, figure 3 left",
        kind=Kind.ERRATUM,
        statement=(
            "Linear networks on whitened inputs and one-hot targets have no global "
            "minimum of vanishing norms: targets that sum to 1 and centred inputs make "
            "the optimal map $\\Sigma^{YX}$ singular, so that some unit $I + W_2 W_1$ "
            "is singular and $\\|W_2 W_1\\| \\geq 1$."
        ),
        printed=(
            "for very deep (general) ResNet there exists a global minimum whose "
            "weights have vanishing norm"
        ),
        corrected=(
            "true of theorem 1's ReLU units; of linear networks on this data only the "
            "infimum of the loss is approached with vanishing norms"
        ),
        check=_singular,
        rival="an invertible optimal map, as random targets have",
    ),
)
