"""Tests that claims declare: a number from the rows, and the claimed region."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ..errors import ConfigError
from ..rows import Row
from .judgement import (
    Judgement,
    Test,
    against,
    agreed,
    all_of,
    any_of,
    every,
    inside,
    renamed,
    undecided,
)
from .sample import difference, largest, largest_distance, slope, smallest
from .selecting import (
    PredictedAndMeasured,
    Region,
    Select,
    above,
    below,
    measured,
    near,
    predicted,
)

# Relative to the largest entry, theory and measurement agree to this in float64.
ROUNDING = below(
    1e-10, source="rounding", why="products and sums of this length in double precision"
)


def exact(
    gaps: Select, *, within: Region = ROUNDING, rival: Select | None = None
) -> Test:
    """Judge whether distances to the prediction are rounding, and a rival's are not.

    If the rival's distances are rounding too, the claim is undecided.

    Args:
        gaps: Rows whose values are distances.
        within: Region of distances that count as rounding.
        rival: Rows of the rival's distances.
    """
    test = inside(largest(gaps), within)
    if rival is None:
        return test
    excluded = inside(
        smallest(rival), above(within.high, source=within.source, why=within.why)
    )
    return against(test, excluded)


def meets(
    quantity: str,
    by: tuple[str, ...],
    within: Region,
    *,
    formula: str = "",
    relative: bool = True,
    test: Callable[[Row], bool] | None = None,
    **labels: Any,
) -> Test:
    """Return a test that measured rows equal the predicted rows with the same labels.

    Args:
        quantity: What is measured, and what is predicted.
        by: Labels that match a measured row to its predicted row.
        within: Region of the largest distance.
        formula: Name of the predicted quantity, if it differs.
        relative: Divide distances by the predicted value.
        test: Function that rows of both sides must pass.
        labels: Labels that rows of both sides must carry.
    """
    law = predicted(formula or quantity, test, **labels)
    gap = largest_distance(
        law, measured(quantity, test, **labels), by, relative=relative
    )
    return inside(gap, within)


def ordered(
    low: Select,
    high: Select,
    *,
    paired: bool = True,
    log: bool = False,
    by: Region | None = None,
    name: str = "",
) -> Test:
    """Return a test that one mean is less than another, paired by network or not.

    Args:
        low: Rows claimed to be smaller.
        high: Rows claimed to be larger.
        paired: Compare the two of each network.
        log: Compare decimal logarithms.
        by: Region of high minus low; above zero by default.
        name: Name of the difference.
    """
    read = difference(high, low, log=log, paired=paired, name=name)
    return inside(read, by if by is not None else above(0))


def equivalent(
    first: Select,
    second: Select,
    *,
    margin: Region,
    paired: bool = True,
    log: bool = False,
    name: str = "",
) -> Test:
    """Return a test that the interval of a difference of means is within a margin."""
    return inside(difference(first, second, log=log, paired=paired, name=name), margin)


def trend(
    rows: Select,
    *,
    over: str,
    slope_in: Region,
    log_x: bool = True,
    log_y: bool = True,
    points: int = 3,
    name: str = "",
) -> Test:
    """Return a test that the slope of means over a label lies in a region."""
    read = slope(rows, over, log_x=log_x, log_y=log_y, points=points, name=name)
    return inside(read, slope_in)


def even_stages(last: int, count: int = 4) -> tuple[int, ...]:
    """Return ``count + 1`` times spread evenly over training, the start included.

    Example:
        >>> even_stages(10_000)
        (0, 2500, 5000, 7500, 10000)
    """
    return tuple(round(last * part / count) for part in range(count + 1))


def steadily(
    rows: Select, *, by: Region, over: str = "step", stages: int = 4, name: str = ""
) -> Test:
    """Return a test that a quantity changes in each of several equal parts of training.

    The times are those recorded nearest to an even spread from 0 to the last one; if
    one lies more than a quarter of a part away, nothing is judged.

    Args:
        rows: The readings along training, the start at 0 included.
        by: Region of the change within a part, such as ``above(margin)``: the margin
            must exceed the noise of one reading, so 0 is refused.
        over: The label of time.
        stages: Number of parts.
        name: Name of the change.
    """
    if not (by.low > 0 or by.high < 0):
        raise ConfigError(
            f"a change in {by} may be noise of a reading: pass above(margin) or "
            "below(-margin) with a margin that exceeds it"
        )

    def test(both: PredictedAndMeasured) -> Judgement:
        times = rows(both).levels(over)
        if not times:
            return undecided(f"{rows} was not measured", name, missing=True)
        wanted = even_stages(times[-1], stages)
        chosen = [min(times, key=lambda time: abs(time - goal)) for goal in wanted]
        away = max(abs(a - b) for a, b in zip(chosen, wanted, strict=True))
        if away > times[-1] / stages / 4:
            why = f"{rows} has no readings near {over} {', '.join(map(str, wanted))}"
            return undecided(f"{why}, spread evenly over the training", name)
        return every(
            inside(
                difference(
                    rows.at(**{over: end}),
                    rows.at(**{over: start}),
                    name=f"change of {name or rows} from {over} {start} to {end}",
                ),
                by,
            )
            for start, end in pairwise(chosen)
        )(both)

    return test


@dataclass(frozen=True)
class ReadAs:
    """A natural reading of a claim: one of the choices that a fair reader could make.

    Attributes:
        name: Short name, such as "20 steps, linear axis".
        what: The reading in one sentence.
        source: Who reads it so: figure, script or section of the paper, or "ours".
        test: Judges the claim under this reading.
    """

    name: str
    what: str
    source: str
    test: Test


def readings(*listed: ReadAs) -> Test:
    """Return a test that holds, or fails, only if it does under all readings.

    Otherwise it is undecided, and the reason says which reading turns it. The readings
    of a reading count one by one.

    Args:
        listed: Two or more readings, written down before the rows are read; the one
            that the paper itself uses comes first and is cited.
    """
    names = [one.name for one in listed]
    if len(set(names)) < max(2, len(names)) or not all(
        one.name and one.what and one.source for one in listed
    ):
        raise ConfigError(
            f"the readings {names} were given: pass two or more with different names, "
            "each with a sentence and its source"
        )

    def each_of(reading: ReadAs, both: PredictedAndMeasured) -> list[Judgement]:
        judged, note = reading.test(both), f"{reading.what} ({reading.source})"
        if judged.rule != "readings":
            return [replace(all_of([judged], reading.name), note=note)]
        return [
            replace(one, name=f"{reading.name}; {one.name}", note=f"{note} {one.note}")
            for one in judged.pieces
        ]

    return lambda both: agreed([one for r in listed for one in each_of(r, both)])


def our_margin(margin: float, why: str, centre: float = 0.0) -> Region:
    """Return the region that counts as equal, with a margin that we chose."""
    return near(centre, margin, source="ours", why=why)


def each(
    label: str,
    rows: Select,
    make: Callable[[Any], Test],
    *,
    where: Callable[[Any], bool] | None = None,
    least: int = 1,
    name: str = "",
) -> Test:
    """Return a test that holds if ``make``'s test holds at every value of a label.

    Args:
        label: The label.
        rows: Rows whose values of the label count.
        make: Makes the test of one value.
        where: Which values count; all by default.
        least: With fewer values than this, nothing is judged.
        name: Name of the judgement.
    """
    return lambda both: _levels(both, label, rows, make, where, least, name, all_of)


def at_each(
    label: str, rows: Select, make: Callable[[Select], Test], **options: Any
) -> Test:
    """Return a test that holds if a test of the rows at each value of a label holds.

    Args:
        label: The label.
        rows: All rows.
        make: Makes the test of the rows at one value.
        options: Further arguments of ``each``.
    """
    return each(label, rows, lambda x: make(rows.at(**{label: x})), **options)


def somewhere(
    label: str,
    rows: Select,
    make: Callable[[Any], Test],
    *,
    where: Callable[[Any], bool] | None = None,
    least: int = 1,
    name: str = "",
) -> Test:
    """Return a test that holds if ``make``'s test holds at some value of a label."""
    return lambda both: _levels(both, label, rows, make, where, least, name, any_of)


def _levels(
    both: PredictedAndMeasured,
    label: str,
    rows: Select,
    make: Callable[[Any], Test],
    where: Callable[[Any], bool] | None,
    least: int,
    name: str,
    join: Callable[..., Judgement],
) -> Judgement:
    levels = [x for x in rows(both).levels(label) if where is None or where(x)]
    if len(levels) < least or not levels:
        return undecided(
            f"{rows} has {len(levels)} values of {label}, wanted are {max(least, 1)}",
            name,
            missing=not levels,
        )
    pieces = [make(level)(both) for level in levels]
    labelled = [
        renamed(piece, f"{piece.name}, {label} {_plain(level)}")
        if f"{label} {level}" not in piece.name
        else piece
        for piece, level in zip(pieces, levels, strict=True)
    ]
    return join(labelled, name)


def _plain(level: Any) -> str:
    return f"{level:.4g}" if isinstance(level, float) else str(level)
