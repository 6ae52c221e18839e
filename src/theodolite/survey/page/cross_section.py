"""The network cut open along its depth: one column a block, one track a quantity."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from theodolite.survey.page.columns import Column, Side
from theodolite.survey.page.heat import Cells, reach_of
from theodolite.survey.page.numbers import number, tick
from theodolite.survey.page.scales import Scale, scale_of
from theodolite.survey.page.svg import box, element, group, line
from theodolite.survey.page.tracks import (
    TRACKS,
    Mark,
    Track,
    marks_of,
    shares_of,
    why_missing,
)

_LEFT, _RIGHT = 58, 10
# All columns fit a wide screen down to this width; more of them scroll.
_WIDE, _NARROWEST, _BROADEST = 990.0, 4.9, 150.0
_HEADING, _GAP, _MAP_TALL = 25, 12, 44
# Bars of shares reach the top at this at least: a scale of nothing shows noise.
_LEAST_SHARE = 0.1
_LEAST_BAR = 1.5
_TALL = {"heat": 96, "line": 58, "dots": 62, "bars": 44}
# Columns narrower than this cannot each carry a name.
_NAMED, _LONGEST = 18.0, 15


@dataclass(frozen=True, kw_only=True)
class Section:
    """All that the drawings of one page share, so that two sides compare.

    Attributes:
        columns: Blocks in order of depth.
        pitch: Width of a column.
        marks: Numbers by side and quantity.
        reach: Decades that the colours span.
        heated: Whether there is anything to colour.
    """

    columns: tuple[Column, ...]
    pitch: float
    marks: Mapping[str, Mapping[str, list[Mark | None]]]
    reach: float
    heated: bool


def section_of(sides: Sequence[Side], columns: tuple[Column, ...]) -> Section:
    """Gather what is to be drawn of all sides."""
    values = [v for s in sides for c in columns for _, v in shares_of(s, c)]
    pitch = _WIDE / max(len(columns), 1)
    return Section(
        columns=columns,
        pitch=min(_BROADEST, max(_NARROWEST, pitch)),
        marks={
            side.key: {t.quantity: marks_of(t, side, columns) for t in TRACKS}
            for side in sides
        },
        reach=reach_of(values),
        heated=bool(values),
    )


def draw_section(section: Section, side: Side) -> Markup:
    """Return the cross-section of one side."""
    at, parts = 4.0, [_map(section, side, 4.0)]
    at += _HEADING + _MAP_TALL + _GAP
    for track in TRACKS:
        drawn, tall = _track(section, side, track, at)
        parts.append(drawn)
        at += _HEADING + tall + _GAP
    parts.append(_names(section, at))
    wide = _LEFT + section.pitch * len(section.columns) + _RIGHT
    parts.append(group(_columns(section, side, at), class_="columns"))
    # Names of the first columns reach to the left, those of tracks to the right.
    longest = max(
        (len(n) for n in short_names([c.name for c in section.columns])), default=0
    )
    whole, tall = max(wide, 470.0), at + 22 + 4.6 * longest
    return element(
        "svg",
        *parts,
        class_="section",
        width=whole,
        height=tall,
        viewBox=f"0 0 {whole:.0f} {tall:.0f}",
        role="group",
        aria_label=f"Cross-section by depth {side.word}: a column a block",
    )


def _left(section: Section, index: int) -> float:
    return _LEFT + section.pitch * index


def _middle(section: Section, index: int) -> float:
    return _left(section, index) + section.pitch / 2


def _heading(text: str, at: float) -> Markup:
    return element("text", text, class_="heading", x=2, y=at + 13)


def _map(section: Section, side: Side, at: float) -> Markup:
    """Draw bodies, skips and norms; one path a look, however many blocks there are."""
    top, gap = at + _HEADING, min(3.0, section.pitch * 0.12)
    wide = section.pitch - 2 * gap
    paths: dict[str, list[str]] = {}
    for column in section.columns:
        block = column.blocks.get(side.key)
        if block is None:
            continue
        left = _left(section, column.index) + gap
        body = f"body {_safe(block.kind)}"
        paths.setdefault(body, []).append(box(left, top + 18, wide, 12))
        if block.skip:
            look = "identity" if block.skip == "identity" else "changed"
            arc = _arc(left, left + wide, top + 18)
            paths.setdefault(f"skip {look}", []).append(arc)
        for look, share in _norms(block.norms):
            dot = f"M{left + share * wide:.1f} {top + 37:.1f}h0"
            paths.setdefault(look, []).append(dot)
    parts = [_heading("Blocks, their skips and norms", at)]
    for look, found in paths.items():
        broad = min(5.2, wide * 0.6) if look.startswith("norm") else None
        parts.append(element("path", class_=look, stroke_width=broad, d="".join(found)))
    return group(parts, class_="map")


def _arc(left: float, right: float, base: float) -> str:
    top = base - 20
    bends = f"{left:.1f} {top:.1f} {right:.1f} {top:.1f}"
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
    heading = _heading(track.title, at)
    top = at + _HEADING
    if track.kind == "heat":
        cells = _strips(section, side, top, _TALL["heat"])
        if cells is not None:
            return group([heading, cells], class_="track heat"), _TALL["heat"]
    else:
        own = section.marks[side.key][track.quantity]
        if any(own):
            tall = _TALL[track.kind]
            drawn = _numbers(section, track, own, top, tall)
            return group([heading, *drawn], class_=f"track {track.kind}"), tall
    told = f"Not shown: {why_missing(track, side)}"
    cut = told if len(told) <= 150 else f"{told[:149]}…"
    missing = element("text", cut, class_="missing", x=2, y=top + 12)
    return group([heading, missing], class_="track missing"), 16.0


def _strips(section: Section, side: Side, top: float, tall: float) -> Markup | None:
    cells, found = Cells(section.reach), False
    gap = min(0.8, section.pitch * 0.06)
    for column in section.columns:
        shares = shares_of(side, column)
        step = tall / max(len(shares), 1)
        for row, (_, value) in enumerate(reversed(shares)):
            found = True
            left = _left(section, column.index) + gap
            cells.add(value, left, top + row * step, section.pitch - 2 * gap, step)
    if not found:
        return None
    ends = (("largest", 10.0), ("median", tall / 2 + 4), ("smallest", tall - 2))
    return group(
        [
            cells.drawn(),
            *(
                element("text", name, x=_LEFT - 6, y=top + y, text_anchor="end")
                for name, y in ends
            ),
        ]
    )


def _numbers(
    section: Section, track: Track, own: list[Mark | None], top: float, tall: float
) -> Iterator[Markup]:
    scale = _scale(section, track, top, tall)
    right = _left(section, len(section.columns))
    for value in scale.ticks(2 if scale.log else 3):
        y = scale(value)
        yield element("path", class_="grid", d=f"M{_LEFT} {y:.1f}H{right:.1f}")
        yield element("text", tick(value), x=_LEFT - 6, y=y + 3.5, text_anchor="end")
    if track.reference is not None:
        y = scale(track.reference)
        yield element("path", class_="rule", d=f"M{_LEFT} {y:.1f}H{right:.1f}")
    if track.kind == "line":
        for stretch in _stretches(section, own, scale):
            yield element("path", class_="stroke", d=line(stretch))
    yield from _marks(section, track, own, scale)


def _scale(section: Section, track: Track, top: float, tall: float) -> Scale:
    shown = [m for marks in section.marks.values() for m in marks[track.quantity] if m]
    values = [v for mark in shown for v in (mark if track.spread else mark[:1])]
    log = track.log and all(v > 0 for v in values)
    within = [] if track.reference is None else [track.reference]
    within += [0.0, _LEAST_SHARE] if track.kind == "bars" else []
    return scale_of(values, top + tall, top, log=log, within=within)


def _stretches(
    section: Section, own: list[Mark | None], scale: Scale
) -> Iterator[list[tuple[float, float]]]:
    run: list[tuple[float, float]] = []
    for index, mark in enumerate([*own, None]):
        if mark is not None:
            run.append((_middle(section, index), scale(mark[0])))
        elif run:
            yield run
            run = []


def _marks(
    section: Section, track: Track, own: list[Mark | None], scale: Scale
) -> Iterator[Markup]:
    broad = min(6.4, section.pitch * 0.72)
    dots, reaches, bars = [], [], []
    for index, mark in enumerate(own):
        if mark is None:
            continue
        x, y = _middle(section, index), scale(mark[0])
        if track.kind == "bars":
            half = section.pitch * 0.36
            # A share of nothing is seen to be measured.
            wide, base = 2 * half, scale(0.0)
            top = min(y, base - _LEAST_BAR)
            bars.append(box(x - half, top, wide, base - top))
            continue
        if mark[1] < mark[2]:
            reaches.append(f"M{x:.1f} {scale(mark[1]):.1f}V{scale(mark[2]):.1f}")
        dots.append(f"M{x:.1f} {y:.1f}h0")
    if dots:
        yield element("path", class_="dots", stroke_width=broad, d="".join(dots))
    if reaches:
        yield element("path", class_="reach", d="".join(reaches))
    if bars:
        yield element("path", class_="bar", d="".join(bars))


def _names(section: Section, at: float) -> Markup:
    names = short_names([column.name for column in section.columns])
    every = max(1, math.ceil(_NAMED / section.pitch))
    parts = []
    for column, name in zip(section.columns, names, strict=True):
        if column.index % every:
            continue
        x = _middle(section, column.index) + 3
        turn = f"translate({x:.1f} {at + 12:.1f}) rotate(-45)"
        parts.append(element("text", name, transform=turn, text_anchor="end"))
    return group(parts, class_="names")


def short_names(names: Sequence[str]) -> list[str]:
    """Return names without what all share at the front, cut from the left.

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


def _columns(section: Section, side: Side, tall: float) -> Iterator[Markup]:
    for column in section.columns:
        told = _told(section, side, column)
        yield element(
            "a",
            element("title", told),
            element(
                "rect",
                x=_left(section, column.index),
                y=0,
                width=section.pitch,
                height=tall,
            ),
            href=f"#block-{column.index}",
            class_="column",
            data_column=column.index,
        )


def _told(section: Section, side: Side, column: Column) -> str:
    block = column.blocks.get(side.key)
    if block is None:
        return f"{column.name}: not in this network"
    parts = [block.kind, f"{block.skip} skip" if block.skip else "", *block.norms]
    told = [f"{block.name}: {', '.join(one for one in parts if one)}"]
    for track in TRACKS:
        if track.kind == "heat":
            shares = shares_of(side, column)
            if shares:
                low, high = number(shares[0][1]), number(shares[-1][1])
                told.append(f"singular values {low} to {high}")
            continue
        mark = section.marks[side.key][track.quantity][column.index]
        if mark is not None:
            told.append(f"{track.title.partition(':')[0].lower()} {number(mark[0])}")
    return "\n".join(told)


def _safe(kind: str) -> str:
    return kind if kind in ("residual", "plain", "stem", "head") else "plain"
