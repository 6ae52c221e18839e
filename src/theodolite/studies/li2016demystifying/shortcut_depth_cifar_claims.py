"""What figure 9 claims of depth and shortcut depth on CIFAR-10, judged from rows."""

from theodolite.core import Claim, Number, Rows, Verdict, holds_if, undecided
from theodolite.studies.li2016demystifying.cifar_judging import (
    TOO_FEW,
    difference,
    direction,
    final_errors,
    longest,
    number,
)

OTHERS = (1, 3, 4)
VERY_DEEP = 400

Numbers = dict[str, Number | float | int]


def _parameters(predicted: Rows, measured: Rows) -> Verdict:
    counted = measured.where(quantity="parameters")
    wrong, spread = 0, 0
    for row in predicted.where(quantity="parameters"):
        found = counted.where(source=row["source"], depth=row["depth"]).values()
        wrong += int((found != row["value"]).sum())
        spread = max(spread, int(found.max() - found.min()) if len(found) else 0)
    return holds_if(
        len(counted) > 0 and wrong == 0 and spread == 0,
        {
            "networks counted": len(counted),
            "networks that differ from the formula": wrong,
            "largest difference at equal depth": spread,
        },
        holds="shortcut depths 1 to 4 have exactly the same number of parameters",
        fails="numbers of parameters differ at equal depth",
    )


def _ends(rows: Rows) -> tuple[int, int] | None:
    """Return the shallowest and the deepest network trained to the end."""
    depths = sorted({depth for _, depth in final_errors(rows) if depth < VERY_DEEP})
    return (depths[0], depths[-1]) if len(depths) > 1 else None


def _growth(rows: Rows, shortcuts: tuple[int, ...], low: int, high: int) -> tuple:
    """Return the changes of error from one depth to another, and their numbers."""
    errors = final_errors(rows)
    changes, numbers = {}, {}
    for n in shortcuts:
        change = difference(errors.get((n, high), {}), errors.get((n, low), {}))
        if change is not None:
            changes[n] = change
            numbers[f"{n}-shortcut: error at {high} minus at {low}"] = number(change)
    numbers["seeds"] = min((c.n for c in changes.values()), default=0)
    return changes, numbers


def _two_gains(predicted: Rows, measured: Rows) -> Verdict:
    rows = longest(measured)
    ends = _ends(rows)
    if ends is None:
        return undecided("fewer than two depths were trained", {})
    changes, numbers = _growth(rows, (2,), *ends)
    sign = direction(changes.get(2))
    if sign == 0:
        return undecided(
            "the change with depth is within the spread of the seeds", numbers
        )
    return holds_if(
        sign < 0,
        numbers,
        holds="the deepest 2-shortcut networks err less than the shallowest",
        fails="the deepest 2-shortcut networks err more than the shallowest",
    )


def _others_degrade(predicted: Rows, measured: Rows) -> Verdict:
    rows = longest(measured)
    ends = _ends(rows)
    if ends is None:
        return undecided("fewer than two depths were trained", {})
    changes, numbers = _growth(rows, OTHERS, *ends)
    signs = {n: direction(changes.get(n), comparisons=3) for n in OTHERS}
    better = [n for n in OTHERS if signs[n] < 0]
    if not better and not all(sign > 0 for sign in signs.values()):
        open_ = ", ".join(str(n) for n in OTHERS if signs[n] == 0)
        return undecided(
            f"for shortcut depth {open_} the change with depth is within the spread "
            f"of the seeds",
            numbers,
        )
    return holds_if(
        not better,
        numbers,
        holds="1-, 3- and 4-shortcut networks all err more when deeper",
        fails=f"networks with shortcut depth {', '.join(map(str, better))} err less "
        f"when deeper",
    )


def _two_best(predicted: Rows, measured: Rows) -> Verdict:
    rows = longest(measured)
    ends = _ends(rows)
    if ends is None:
        return undecided("fewer than two depths were trained", {})
    errors, deep = final_errors(rows), ends[1]
    numbers: Numbers = {}
    signs = {}
    for n in OTHERS:
        gap = difference(errors.get((n, deep), {}), errors.get((2, deep), {}))
        signs[n] = direction(gap, comparisons=len(OTHERS))
        if gap is not None:
            name = f"error of {n}-shortcut minus 2-shortcut, depth {deep}"
            numbers[name] = number(gap)
            numbers["seeds"] = gap.n
    worse = [n for n in OTHERS if signs[n] < 0]
    if not worse and not all(sign > 0 for sign in signs.values()):
        open_ = ", ".join(str(n) for n in OTHERS if signs[n] == 0)
        return undecided(
            f"shortcut depth 2 and {open_} are within the spread of the seeds",
            numbers,
        )
    return holds_if(
        not worse,
        numbers,
        holds=f"at depth {deep} shortcut depth 2 errs least",
        fails=f"at depth {deep} shortcut depth {', '.join(map(str, worse))} errs less "
        f"than 2",
    )


def _very_deep(predicted: Rows, measured: Rows) -> Verdict:
    rows = longest(measured)
    deep = sorted({d for d in measured.levels("depth") if d > VERY_DEEP})
    ends = _ends(rows)
    reached = max((d for _, d in final_errors(rows)), default=0)
    numbers: Numbers = {"deepest network trained to the end": reached}
    for depth in deep:
        for row in measured.where(quantity="test_error", depth=depth):
            name = f"{row['shortcut']}-shortcut, depth {depth}, epoch {row['epoch']}"
            numbers[name] = Number(row["value"], row["error"])
    if reached <= VERY_DEEP or ends is None:
        return undecided(
            f"no network deeper than {VERY_DEEP} was trained as long as the others",
            numbers,
        )
    changes, grown = _growth(rows, (1, 2, 3, 4), ends[1], reached)
    signs = {n: direction(changes.get(n), comparisons=4) for n in (1, 2, 3, 4)}
    numbers |= grown
    against = signs[2] > 0 or any(signs[n] < 0 for n in OTHERS)
    if not against and not (signs[2] < 0 and all(signs[n] > 0 for n in OTHERS)):
        least = min((c.n for c in changes.values()), default=0)
        return undecided(
            f"{least} seeds beyond depth {VERY_DEEP} do not decide ({TOO_FEW} are the "
            f"least)",
            numbers,
        )
    return holds_if(
        not against,
        numbers,
        holds=f"beyond depth {VERY_DEEP} only shortcut depth 2 gains",
        fails=f"beyond depth {VERY_DEEP} another than shortcut depth 2 gains, or 2 "
        f"does not",
    )


# Judged on this run and on the committed one.
BOTH = (
    Claim(
        name="shortcut-depths-equal-parameters",
        place="Section 5.3.2",
        statement=(
            "The shortcut depth of a pre-activation network changes while its number "
            "of parameters stays fixed."
        ),
        check=_parameters,
        rival="counts that differ by the layers at the changes of stage",
    ),
)
# Judged on the committed run where it is there.
CLAIMS = (
    Claim(
        name="two-shortcut-gains-from-depth",
        place="Figure 9, section 5.3.2",
        statement=(
            "2-shortcut networks err less on the test images when they are deeper."
        ),
        check=_two_gains,
        rival="an error that stays or grows with depth",
    ),
    Claim(
        name="other-shortcuts-degrade",
        place="Figure 9, section 5.3.2",
        statement=(
            "1-, 3- and 4-shortcut networks err more on the test images when they are "
            "deeper."
        ),
        check=_others_degrade,
        rival="an error that falls with depth, as for 2-shortcut networks",
    ),
    Claim(
        name="two-shortcut-best-when-deep",
        place="Figure 9",
        statement=(
            "At the largest depth trained, 2-shortcut networks err less than 1-, 3- "
            "and 4-shortcut ones with the same number of parameters."
        ),
        check=_two_best,
        rival="another shortcut depth with the same or a smaller error",
    ),
    Claim(
        name="only-two-gains-beyond-400",
        place="Section 5.3.2",
        statement=(
            "Beyond depth 400 only networks with shortcut depth 2 gain from more "
            "depth; all others degrade."
        ),
        check=_very_deep,
        rival="gains, or losses, for every shortcut depth alike",
    ),
)
