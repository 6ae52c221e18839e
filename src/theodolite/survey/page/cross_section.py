"""The network along its depth: one column per block, one track per quantity."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from theodolite.core import MeasurementError, Rows
from theodolite.figures import draw_cross_section
from theodolite.pages import (
    HeatCells,
    Scale,
    element,
    group,
    line,
    path,
    rectangle,
    scale_of,
    short_number,
    text_element,
)

from ..records.outcomes import on_fewest
from .depth import TRACKS, Column, Mark, Side, Track, columns_of, side_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..records.whole_survey import Survey

_LEFT, _RIGHT = 58, 10
# Columns are at least this wide; if they do not fit the screen, it scrolls.
_WIDE, _NARROWEST, _BROADEST = 990.0, 4.9, 150.0
_HEADING, _GAP, _MAP_TALL = 25, 12, 44
# The scale of shares ends at this value or higher, so that it does not magnify noise.
_LEAST_SHARE = 0.1
_LEAST_BAR = 1.5
_TALL = {"heat": 96, "line": 58, "dots": 62, "bars": 44}
# Columns narrower than this cannot each carry a name.
_NAMED, _LONGEST = 18.0, 15
_KINDS = ("residual", "plain", "stem", "head")


@dataclass(frozen=True, kw_only=True)
class Section:
    """Data shared by the drawings of one page, so that two sides are comparable.

    Attributes:
        columns: Blocks in order of depth.
        pitch: Width of a column.
        marks: Numbers by side and quantity.
        ratios: Ratios that the colours must distinguish.
    """

    columns: tuple[Column, ...]
    pitch: float
    marks: Mapping[str, Mapping[str, list[Mark | None]]]
    ratios: tuple[float, ...]

    def left(self, index: int) -> float:
        """Return the left end of a column."""
        return _LEFT + self.pitch * index

    def middle(self, index: int) -> float:
        """Return the middle of a column."""
        return self.left(index) + self.pitch / 2


def section_of(sides: Sequence[Side], columns: tuple[Column, ...]) -> Section:
    """Return the data to draw for all sides."""
    pitch = _WIDE / max(len(columns), 1)
    return Section(
        columns=columns,
        pitch=min(_BROADEST, max(_NARROWEST, pitch)),
        marks={
            side.key: {track.quantity: track.marks(side, columns) for track in TRACKS}
            for side in sides
        },
        ratios=tuple(v for s in sides for c in columns for _, v in s.shares_of(c)),
    )


def draw_section(section: Section, side: Side) -> Markup:
    """Return the cross-section of one side."""
    at = 4.0
    parts = [_map(section, side, at)]
    at += _HEADING + _MAP_TALL + _GAP
    for track in TRACKS:
        drawn, tall = _track(section, side, track, at)
        parts.append(drawn)
        at += _HEADING + tall + _GAP
    names = short_names([column.name for column in section.columns])
    parts.append(_names(section, names, at))
    parts.append(group(_columns(section, side, at), "columns"))
    wide = _LEFT + section.pitch * len(section.columns) + _RIGHT
    # Names of the first columns reach to the left, those of tracks to the right.
    whole = max(wide, 470.0)
    tall = at + 22 + 4.6 * max(map(len, names), default=0)
    return element(
        "svg",
        *parts,
        class_="section",
        width=whole,
        height=tall,
        viewBox=f"0 0 {whole:.0f} {tall:.0f}",
        role="group",
        aria_label=f"Cross-section by depth {side.word}: one column per block",
    )


def cross_section(survey: "Survey") -> "Figure":
    """Draw a cross-section of the network by depth, with matplotlib.

    Raises:
        MeasurementError: Nothing was measured by depth.
    """
    rows = rows_by_depth(survey)
    if not len(rows):
        raise MeasurementError(
            f"the survey of {survey.title} holds no number by depth: survey with the "
            "measures map, signal or jacobian"
        )
    drawn = {track.quantity for track in TRACKS}
    on = on_fewest(row for row in survey.rows() if row["quantity"] in drawn)
    return draw_cross_section(rows, title=f"{survey.title}{on}")


def rows_by_depth(survey: "Survey") -> Rows:
    """Return what a cross-section shows, one row per block and quantity."""
    side, columns = side_of(survey), columns_of(survey)
    rows: list[dict[str, Any]] = []
    for track in TRACKS:
        marks = track.marks(side, columns)
        for column, mark in zip(columns, marks, strict=True):
            place = {"block": column.name, "depth": column.index}
            if track.kind == "heat":
                mine = side.by_block[column.name].where(quantity=track.quantity)
                rows += [{**row, **place} for row in mine]
            elif mark is not None:
                value, low, high = mark
                error = None if track.spread else max(high - value, value - low)
                number = {"quantity": track.quantity, "value": value, "error": error}
                rows.append(number | place)
    return Rows(rows)


def short_names(names: Sequence[str]) -> list[str]:
    """Return names without their common prefix; long ones are cut from the left.

    Example:
        >>> short_names(["model.layers.0", "model.layers.1"])
        ['0', '1']
        >>> short_names(["conv1", "layer1.0"])
        ['conv1', 'layer1.0']
    """
    split = [name.split(".") for name in names]
    shared = 0
    while len(names) > 1 and all(
        len(one) > shared + 1 and one[shared] == split[0][shared] for one in split
    ):
        shared += 1
    kept = [".".join(one[shared:]) for one in split]
    return [one if len(one) <= _LONGEST else f"…{one[1 - _LONGEST :]}" for one in kept]


def _heading(text: str, at: float) -> Markup:
    return text_element(text, 2, at + 13, look="heading")


def _map(section: Section, side: Side, at: float) -> Markup:
    """Draw bodies, skips and norms, as one SVG path per style."""
    top, gap = at + _HEADING, min(3.0, section.pitch * 0.12)
    wide = section.pitch - 2 * gap
    paths: dict[str, list[str]] = {}
    for column in section.columns:
        block = column.blocks.get(side.key)
        if block is None:
            continue
        left = section.left(column.index) + gap
        kind = block.kind if block.kind in _KINDS else "plain"
        paths.setdefault(f"body {kind}", []).append(rectangle(left, top + 18, wide, 12))
        if block.skip:
            look = "identity" if block.skip == "identity" else "changed"
            arc = _arc(left, left + wide, top + 18)
            paths.setdefault(f"skip {look}", []).append(arc)
        for look, share in _norms(block.norms):
            dot = f"M{left + share * wide:.1f} {top + 37:.1f}h0"
            paths.setdefault(look, []).append(dot)
    parts = [_heading("Blocks, their skips and norms", at)]
    for look, pieces in paths.items():
        broad = min(5.2, wide * 0.6) if look.startswith("norm") else None
        parts.append(path(look, "".join(pieces), stroke_width=broad))
    return group(parts, "map")


def _arc(left: float, right: float, base: float) -> str:
    bends = f"{left:.1f} {base - 20:.1f} {right:.1f} {base - 20:.1f}"
    return f"M{left:.1f} {base:.1f}C{bends} {right:.1f} {base:.1f}"


def _norms(norms: Sequence[str]) -> Iterator[tuple[str, float]]:
    placements = {norm.partition(":")[2] for norm in norms}
    for place, share in (("pre", 0.12), ("inside", 0.5), ("post", 0.88)):
        if place in placements:
            yield "norm", share
    if placements - {"pre", "inside", "post"}:
        yield "norm other", 0.5


def _track(
    section: Section, side: Side, track: Track, at: float
) -> tuple[Markup, float]:
    """Return a track and how tall it is."""
    on = side.samples(track.quantity)
    heading = _heading(track.title + (f",{on}" if on else ""), at)
    top, tall = at + _HEADING, _TALL[track.kind]
    own = section.marks[side.key][track.quantity]
    if track.kind == "heat":
        drawn = list(_strips(section, side, top, tall))
    else:
        drawn = list(_numbers(section, track, own, top, tall)) if any(own) else []
    if drawn:
        return group([heading, *drawn], f"track {track.kind}"), tall
    missing = f"Not shown: {track.why_missing(side)}"
    cut = missing if len(missing) <= 150 else f"{missing[:149]}…"
    parts = [heading, text_element(cut, 2, top + 12, look="missing")]
    return group(parts, "track missing"), 16.0


def _strips(section: Section, side: Side, top: float, tall: float) -> Iterator[Markup]:
    cells, gap = HeatCells(section.ratios), min(0.8, section.pitch * 0.06)
    columns = [(column, side.shares_of(column)) for column in section.columns]
    if not any(shares for _, shares in columns):
        return
    for column, shares in columns:
        step = tall / max(len(shares), 1)
        for row, (_, value) in enumerate(reversed(shares)):
            left = section.left(column.index) + gap
            cells.add(value, left, top + row * step, section.pitch - 2 * gap, step)
    yield cells.drawn()
    for name, y in (
        ("largest", 10.0),
        ("median", tall / 2 + 4),
        ("smallest", tall - 2),
    ):
        yield text_element(name, _LEFT - 6, top + y, "end")


def _numbers(
    section: Section, track: Track, own: list[Mark | None], top: float, tall: float
) -> Iterator[Markup]:
    scale = _scale(section, track, top, tall)
    right = section.left(len(section.columns))
    for value, label in scale.ticks(2 if scale.kind == "log" else 3):
        y = scale(value)
        yield path("grid", f"M{_LEFT} {y:.1f}H{right:.1f}")
        yield text_element(label, _LEFT - 6, y + 3.5, "end")
    if track.reference is not None:
        yield path("rule", f"M{_LEFT} {scale(track.reference):.1f}H{right:.1f}")
    if track.kind == "line":
        for points in _unbroken(section, own, scale):
            yield path("stroke", line(points))
    yield from _marks(section, track, own, scale)


def _scale(section: Section, track: Track, top: float, tall: float) -> Scale:
    shown = [m for marks in section.marks.values() for m in marks[track.quantity] if m]
    values = [v for mark in shown for v in (mark if track.spread else mark[:1])]
    log = track.log and all(v > 0 for v in values)
    within = [] if track.reference is None else [track.reference]
    within += [0.0, _LEAST_SHARE] if track.kind == "bars" else []
    return scale_of(values, top + tall, top, log=log, within=within)


def _unbroken(
    section: Section, own: list[Mark | None], scale: Scale
) -> Iterator[list[tuple[float, float]]]:
    """Yield the points of each part of a line that has no gap."""
    points: list[tuple[float, float]] = []
    for index, mark in enumerate([*own, None]):
        if mark is not None:
            points.append((section.middle(index), scale(mark[0])))
        elif points:
            yield points
            points = []


def _marks(
    section: Section, track: Track, own: list[Mark | None], scale: Scale
) -> Iterator[Markup]:
    dots, reaches, bars = [], [], []
    for index, mark in enumerate(own):
        if mark is None:
            continue
        x, y = section.middle(index), scale(mark[0])
        if track.kind == "bars":
            # Draw a share of 0 too, to show that it was measured.
            half, base = section.pitch * 0.36, scale(0.0)
            top = min(y, base - _LEAST_BAR)
            bars.append(rectangle(x - half, top, 2 * half, base - top))
            continue
        if mark[1] < mark[2]:
            reaches.append(f"M{x:.1f} {scale(mark[1]):.1f}V{scale(mark[2]):.1f}")
        dots.append(f"M{x:.1f} {y:.1f}h0")
    if dots:
        broad = min(6.4, section.pitch * 0.72)
        yield path("dots", "".join(dots), stroke_width=broad)
    if reaches:
        yield path("reach", "".join(reaches))
    if bars:
        yield path("bar", "".join(bars))


def _names(section: Section, names: Sequence[str], at: float) -> Markup:
    every = max(1, math.ceil(_NAMED / section.pitch))
    parts = []
    for index, name in list(enumerate(names))[::every]:
        x = section.middle(index) + 3
        turn = f"translate({x:.1f} {at + 12:.1f}) rotate(-45)"
        parts.append(element("text", name, transform=turn, text_anchor="end"))
    return group(parts, "names")


def _columns(section: Section, side: Side, tall: float) -> Iterator[Markup]:
    """Yield the areas that the mouse or the keyboard selects."""
    wide = section.pitch
    for column in section.columns:
        left = section.left(column.index)
        yield element(
            "a",
            element("title", _title(section, side, column)),
            element("rect", x=left, y=0, width=wide, height=tall),
            href=f"#block-{column.index}",
            class_="column",
            data_column=column.index,
        )


def _title(section: Section, side: Side, column: Column) -> str:
    block = column.blocks.get(side.key)
    if block is None:
        return f"{column.name}: not in this network"
    facts = [block.kind, f"{block.skip} skip" if block.skip else "", *block.norms]
    lines = [f"{block.name}: {', '.join(fact for fact in facts if fact)}"]
    for track in TRACKS:
        on = side.samples(track.quantity)
        on = f",{on}" if on else ""
        mark = section.marks[side.key][track.quantity][column.index]
        if track.kind == "heat":
            if shares := side.shares_of(column):
                low, high = (short_number(shares[end][1]) for end in (0, -1))
                lines.append(f"singular values {low} to {high}{on}")
        elif mark is not None:
            name = track.title.partition(":")[0].lower()
            lines.append(f"{name} {short_number(mark[0])}{on}")
    return "\n".join(lines)
