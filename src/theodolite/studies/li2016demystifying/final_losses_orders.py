"""Judges that the claims on figures 7 and 8 share: who ends lower, who takes more."""

from collections.abc import Iterable

from theodolite.core import Number, Verdict, holds_if, undecided
from theodolite.studies.li2016demystifying.final_losses_judging import (
    DEEP,
    NAMES,
    SIGNIFICANT,
    Losses,
    Numbers,
)

# Decades and p-value by network and depth.
Gaps = dict[tuple[str, int], tuple[Number, float]]


def ordered(found: Gaps, numbers: Numbers, *, holds: str, fails: str) -> Verdict:
    """HOLDS if all gaps are positive and significant, FAILS if one is the other way.

    A gap of either sign that could be chance leaves the claim undecided.
    """
    against = [
        f"{NAMES[name]} at depth {depth}"
        for (name, depth), (gap, p) in found.items()
        if not gap.value > 0 and p < SIGNIFICANT
    ]
    doubtful = {
        depth
        for (_, depth), (gap, p) in found.items()
        if gap.value <= 0 or p >= SIGNIFICANT
    }
    beyond = sorted(d for _, d in found if d > max(doubtful, default=0))
    rest = f"; it is met from depth {beyond[0]} up" if beyond else ""
    if doubtful and not against:
        chance = max(p for _, p in found.values())
        why = f"no gap is surely the other way, but one may be chance, p = {chance:.2g}"
        return undecided(why + rest, numbers)
    fails = f"{fails} {', '.join(against)}{rest}"
    return holds_if(not against, numbers, holds=holds, fails=fails)


def closest(found: Gaps, numbers: Numbers, what: str) -> None:
    """Note the least gap to each network."""
    for name in dict.fromkeys(name for name, _ in found):
        depths = [depth for other, depth in found if other == name]
        least = min(depths, key=lambda depth: found[name, depth][0].value)
        gap, p = found[name, least]
        numbers[f"least {what} {NAMES[name]} in decades, depth {least}"] = gap
        numbers[f"its p-value, {NAMES[name]}"] = p


def lowest(losses: Losses, rivals: Iterable[str]) -> Verdict:
    """Judge whether 2-shortcut networks end lower than the rivals at every depth."""
    found: Gaps = {
        (name, depth): losses.gap(name, "two_shortcut", depth)
        for name in rivals
        for depth in losses.depths(name, "two_shortcut")
    }
    numbers: Numbers = {}
    closest(found, numbers, "gap to")
    return ordered(
        found,
        numbers,
        holds="on the same seeds 2-shortcut networks end lower than each of the others "
        "at every depth",
        fails="2-shortcut networks do not end lower than",
    )


def faster(losses: Losses, rivals: Iterable[str]) -> Verdict:
    """Judge whether deep 2-shortcut networks take higher rates than the rivals.

    Depths at which all rates of either network end alike are left out.
    """
    found: Gaps = {
        (name, depth): losses.faster("two_shortcut", name, depth)
        for name in rivals
        for depth in losses.depths(name, "two_shortcut", least=DEEP)
        if not (losses.flat(name, depth) or losses.flat("two_shortcut", depth))
    }
    numbers: Numbers = {
        f"decades above {NAMES[name]}, depth {depth}": gap
        for (name, depth), (gap, _) in found.items()
    }
    missing = [NAMES[name] for name in rivals if name not in {n for n, _ in found}]
    if missing:
        why = f"deep networks end alike at all rates: {', '.join(missing)}"
        return undecided(why, numbers)
    return ordered(
        found,
        numbers,
        holds=f"at every depth from {DEEP} up at which the rate matters, the best rate "
        "of 2-shortcut networks is higher, seed by seed",
        fails="2-shortcut networks take no higher rate than",
    )


def any_rate(losses: Losses, networks: Iterable[str]) -> Verdict:
    """Judge whether the deepest of these networks end alike at all rates."""
    numbers: Numbers = {}
    same, sensitive = True, True
    for name in networks:
        depths = losses.depths(name)
        deep, shallow = (losses.spread(name, d) for d in (depths[-1], depths[0]))
        numbers[f"{NAMES[name]}: worst over best rate, less 1, depth {depths[-1]}"] = (
            deep
        )
        numbers[f"{NAMES[name]}: the same at depth {depths[0]}"] = shallow
        same &= losses.flat(name, depths[-1])
        sensitive &= not losses.flat(name, depths[0])
    return holds_if(
        same and sensitive,
        numbers,
        holds="at the greatest depth the final losses at all rates lie within a tenth "
        "of one another, while at the least depth the rate decides",
        fails="the rate matters at the greatest depth, or not even at the least",
    )
