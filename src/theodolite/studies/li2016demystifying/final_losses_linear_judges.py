"""How the claims on figure 7 are judged from rows."""

import math

import numpy as np

from theodolite.core import Number, Verdict, holds_if, undecided
from theodolite.studies.li2016demystifying.final_losses_judging import (
    DEEP,
    NAMES,
    Losses,
    Numbers,
)

# "Close to optimal": within this share of the optimal loss.
CLOSE = 0.01
# "The same", of excesses and rates that span decades: within so many decades.
ALIKE = 0.5
# Exponent halfway between a rate that stays and one in inverse proportion to depth.
HALFWAY = -0.5
# Decade of the rate at which 3-shortcut networks are stuck or not.
RATE = -1.0
# Of its first excess, a network that trains keeps less and a stuck one more.
TRAINS, STUCK = 0.01, 0.9


def _error(number: Number) -> float:
    return number.error or 0.0


def _share(losses: Losses, network: str, depth: int) -> Number:
    """Return the mean excess as a share of the optimal loss."""
    values = 10 ** losses.logs(network, depth)
    optimum = losses.reference("optimal_loss")
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Number(float(values.mean()) / optimum, error / optimum)


def close(losses: Losses) -> Verdict:
    """Judge whether 2-shortcut networks end within 1 % of the optimum."""
    numbers: Numbers = {}
    near: dict[str, bool] = {}
    for name in NAMES:
        shares = {depth: _share(losses, name, depth) for depth in losses.depths(name)}
        worst = max(shares, key=lambda depth: shares[depth].value)
        label = (
            f"{NAMES[name]}: largest excess as a share of the optimum, depth {worst}"
        )
        numbers[label] = shares[worst]
        near[name] = shares[worst].value + 2 * _error(shares[worst]) < CLOSE
    too = [NAMES[n] for n in NAMES if near[n] and n != "two_shortcut"]
    also = f"; so is that of {', '.join(too)}" if too else ""
    return holds_if(
        near["two_shortcut"] and not near["xavier"],
        numbers,
        holds=f"at every depth the final loss is within 1 % of the optimal loss{also}, "
        "and that of Xavier networks is not",
        fails="at some depth the final loss is not within 1 % of the optimal loss, or "
        "that of Xavier networks is within it too",
    )


def invariant(losses: Losses) -> Verdict:
    """Judge whether the excess of 2-shortcut networks is the same at all depths."""
    depths = losses.depths("two_shortcut")
    means = {depth: losses.mean("two_shortcut", depth) for depth in depths}
    low = min(depths, key=lambda depth: means[depth].value)
    high = max(depths, key=lambda depth: means[depth].value)
    width = losses.rise("two_shortcut", low, high)
    numbers: Numbers = {
        "decades between lowest and highest mean": width,
        f"lowest mean log10 excess, depth {low}": means[low],
        f"highest mean log10 excess, depth {high}": means[high],
    }
    if len(losses.depths("two_shortcut", least=DEEP)) > 2:
        late = losses.growth("two_shortcut", least=DEEP)
        numbers[f"exponent of the excess from depth {DEEP} up"] = late
    if abs(width.value - ALIKE) < 2 * _error(width):
        return undecided("the spread over networks is as large as an effect", numbers)
    return holds_if(
        width.value < ALIKE,
        numbers,
        holds="the mean logarithms of the excess lie within half a decade",
        fails="the excess differs by more than half a decade between depths, though "
        "all of it is small",
    )


def worsen(losses: Losses) -> Verdict:
    """Judge whether orthogonal and 1-shortcut networks lose by depth."""
    numbers: Numbers = {}
    slopes: list[Number] = []
    both = ("orthogonal", "one_shortcut")
    if len(losses.depths(*both, least=DEEP)) < 3:
        return undecided(f"fewer than three depths are {DEEP} or more", numbers)
    for name in both:
        every, late = losses.growth(name), losses.growth(name, least=DEEP)
        numbers[f"{NAMES[name]}: exponent of the excess"] = every
        numbers[f"{NAMES[name]}: exponent from depth {DEEP} up"] = late
        slopes += [every, late]
    if not any(s.value < -3 * _error(s) for s in slopes):
        doubtful = [s for s in slopes if s.value <= 3 * _error(s)]
        if doubtful:
            why = "one of the trends, over all depths or in deep networks, may be none"
            return undecided(why, numbers)
    return holds_if(
        all(s.value > 0 for s in slopes),
        numbers,
        holds="the excess of both grows with depth, over all depths and in deep "
        "networks",
        fails="the excess of one of the two falls with depth",
    )


def xavier_fails(losses: Losses) -> Verdict:
    """Judge whether deep Xavier networks hardly train."""
    depths = losses.depths("xavier")
    zero = losses.reference("zero_map_excess")
    left: dict[int, Number] = {}
    for depth in (depths[0], depths[-1]):
        mean = losses.mean("xavier", depth)
        share = 10**mean.value / zero
        left[depth] = Number(share, share * float(np.log(10)) * _error(mean))
    slope = losses.growth("xavier")
    return holds_if(
        slope.value > 3 * _error(slope) and left[depths[-1]].value > 0.5,
        {
            "exponent of the excess": slope,
            **{
                f"share of the zero map's excess left at depth {depth}": share
                for depth, share in left.items()
            },
            "exponent of the excess of 2-shortcut": losses.growth("two_shortcut"),
        },
        holds="at its best rate the deepest Xavier network keeps more than half of the "
        "excess of a network that outputs zero",
        fails="deep Xavier networks train",
    )


def rate_stays(losses: Losses) -> Verdict:
    """Judge whether the best rate of 2-shortcut networks falls with depth."""
    two, rival = (
        losses.growth(name, of="rates", least=DEEP)
        for name in ("two_shortcut", "orthogonal")
    )
    numbers: Numbers = {
        "exponent of the best rate": two,
        "exponent of the best rate of orthogonal": rival,
    }
    if any(abs(n.value - HALFWAY) < 2 * _error(n) for n in (two, rival)):
        return undecided("the spread over networks is as large as an effect", numbers)
    return holds_if(
        two.value > HALFWAY > rival.value,
        numbers,
        holds="the best rate is nearer to staying than to falling in proportion to "
        "depth, where that of orthogonal networks falls",
        fails="the best rate falls with depth, or that of orthogonal networks does not",
    )


def alike(losses: Losses) -> Verdict:
    """Judge whether 1-shortcut and orthogonal networks end alike."""
    depths = losses.depths("one_shortcut", "orthogonal")
    pair = ("one_shortcut", "orthogonal")
    parts = {
        **{f"loss, depth {d}": losses.gap(*pair, d)[0] for d in depths},
        **{f"rate, depth {d}": losses.rate_gap(*pair, d)[0] for d in depths},
    }
    rival, _ = losses.gap("orthogonal", "two_shortcut", depths[-1])
    numbers: Numbers = {f"decades of {label}": part for label, part in parts.items()}
    numbers[f"decades of loss to 2-shortcut, depth {depths[-1]}"] = rival
    outside = {k: n for k, n in parts.items() if abs(n.value) >= ALIKE}
    if outside and all(abs(n.value) - 2 * _error(n) < ALIKE for n in outside.values()):
        why = (
            f"they differ by half a decade or more, perhaps by chance: {_list(outside)}"
        )
        return undecided(why, numbers)
    return holds_if(
        not outside and abs(rival.value) > ALIKE,
        numbers,
        holds="losses and rates agree within half a decade at every depth",
        fails=f"they differ by more than half a decade: {_list(outside)}"
        if outside
        else "2-shortcut networks are as near",
    )


def _list(parts: dict[str, Number]) -> str:
    return "; ".join(parts)


def _left(losses: Losses, network: str, depth: int, rate: float = RATE) -> Number:
    """Return the share of the first excess that is left at a rate.

    NaN where a network diverges at it, or where it was not tried.
    """
    rows = losses.means(network, depth)
    rows = rows.where(lambda row: math.isclose(row["rate"], rate, abs_tol=1e-9))
    if not len(rows):
        return Number(float("nan"))
    (row,) = rows
    start = losses.reference("start_excess")
    return Number(row["value"] / start, row["error"] / start)


def stuck(losses: Losses) -> Verdict:
    """Judge whether 3-shortcut networks stay at the start, where 2-shortcut train."""
    depths = losses.depths("three_shortcut", "two_shortcut", least=DEEP)
    two, three = (
        {depth: _left(losses, name, depth) for depth in depths}
        for name in ("two_shortcut", "three_shortcut")
    )
    lost = [d for d in depths if math.isnan(two[d].value + three[d].value)]
    if lost:
        places = ", ".join(map(str, lost))
        why = f"at depth {places} some run at a rate of 0.1 diverged or is missing"
        return undecided(why, {})
    most = max(depths, key=lambda depth: two[depth].value)
    numbers: Numbers = {
        f"most that 2-shortcut keeps, depth {most}": two[most],
        **{f"what 3-shortcut keeps, depth {depth}": three[depth] for depth in depths},
    }
    for depth in (depths[0], depths[-1]):
        gap, _ = losses.gap("three_shortcut", "two_shortcut", depth)
        numbers[f"decades between them at their best rates, depth {depth}"] = gap
        low = _left(losses, "three_shortcut", depth, -1.4)
        if not math.isnan(low.value):
            numbers[f"what 3-shortcut keeps at a rate of 0.04, depth {depth}"] = low
    return holds_if(
        two[most].value < TRAINS and min(n.value for n in three.values()) > STUCK,
        numbers,
        holds="at a rate of 0.1, at which 2-shortcut networks lose 99 % of their first "
        "excess, 3-shortcut networks keep nine tenths of it through all steps",
        fails="3-shortcut networks leave the start at a rate of 0.1, or 2-shortcut "
        "ones do not",
    )
