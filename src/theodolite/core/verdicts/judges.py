"""What claims declare: a number read off the rows, and the region it is claimed in."""

from collections.abc import Callable, Iterable
from typing import Any

from ..rows import Row
from .judgement import (
    Judgement,
    all_of,
    any_of,
    excluding_rival,
    judge,
    renamed,
    undecided,
)
from .region import Region, above, below, near
from .sample import Read, difference, largest, largest_distance, slope, smallest
from .selecting import PredictedAndMeasured, Select, measured, predicted

# A claim's test: the rows of theory and measurement in, a judgement out.
Test = Callable[[PredictedAndMeasured], Judgement]

# In double precision, theory and measurement agree to this part of the largest entry.
ROUNDING = below(
    1e-10, source="rounding", why="products and sums of this length in double precision"
)


def inside(read: Read, region: Region) -> Test:
    """A number lies in a region."""
    return lambda both: judge(read(both), region)


def exact(
    gaps: Select, *, within: Region = ROUNDING, rival: Select | None = None
) -> Test:
    """Judge whether distances to the prediction are only rounding, a rival's not.

    If the rival's distances are rounding too, the claim is undecided.

    Args:
        gaps: Rows whose values are distances.
        within: What counts as rounding.
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
    """Measured rows of a quantity are the predicted ones of the same labels.

    Args:
        quantity: What is measured, and what is predicted.
        by: Labels by which a measured row finds its predicted one.
        within: Region of the largest distance.
        formula: Name of what is predicted, where it is another.
        relative: In units of what is predicted.
        test: What rows of both sides must pass.
        labels: What rows of both sides must carry.
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
    """The mean of one is less than that of the other, network by network or apart.

    Args:
        low: What is claimed to be less.
        high: What is claimed to be more.
        paired: Compare the two of each network.
        log: Compare decimal logarithms.
        by: Region of the high less the low; above zero by default.
        name: What the difference is called.
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
    """Two means differ by less than a margin, which the whole interval must meet."""
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
    """The slope of means over a label lies in a region."""
    read = slope(rows, over, log_x=log_x, log_y=log_y, points=points, name=name)
    return inside(read, slope_in)


def our_margin(margin: float, why: str, centre: float = 0.0) -> Region:
    """The region of what counts as the same, by our choice of margin."""
    return near(centre, margin, source="ours", why=why)


def every(*tests: Test | Iterable[Test], name: str = "") -> Test:
    """All tests hold; an iterable counts as the tests in it."""
    listed = _listed(tests)
    return lambda both: all_of([test(both) for test in listed], name)


def some(*tests: Test | Iterable[Test], name: str = "") -> Test:
    """At least one test holds; an iterable counts as the tests in it."""
    listed = _listed(tests)
    return lambda both: any_of([test(both) for test in listed], name)


def _listed(tests: Iterable[Test | Iterable[Test]]) -> list[Test]:
    return [one for item in tests for one in ([item] if callable(item) else item)]


def against(test: Test, rival: Test) -> Test:
    """Return a test that holds only if its rival is excluded."""
    return lambda both: excluding_rival(test(both), rival(both))


def each(
    label: str,
    rows: Select,
    make: Callable[[Any], Test],
    *,
    where: Callable[[Any], bool] | None = None,
    least: int = 1,
    name: str = "",
) -> Test:
    """A test holds at every value of a label that the rows have.

    Args:
        label: The label.
        rows: Whose values of it count.
        make: Makes the test of one value.
        where: Which values count; all by default.
        least: Fewest values, below which nothing is judged.
        name: What is judged.
    """
    return lambda both: _levels(both, label, rows, make, where, least, name, all_of)


def at_each(
    label: str, rows: Select, make: Callable[[Select], Test], **options: Any
) -> Test:
    """A test of the rows at one value of a label holds at each of its values.

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
    """A test holds at some value of a label that the rows have."""
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
