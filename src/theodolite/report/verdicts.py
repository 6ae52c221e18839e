"""A claim laid out for the page: what decides it, drawn, and all its other numbers."""

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from theodolite.core import (
    Kind,
    Outcome,
    Region,
    SavedJudgement,
    SavedRuling,
    SavedVerdict,
)
from theodolite.report.gauge import Strip, gauge, region_told, small_gauge, told
from theodolite.report.scale import scale_for
from theodolite.report.sheet import Sheet

_WHOSE = {"own": "this run", "committed": "committed"}
_RUNS = {"this run": "this run", "committed": "committed run"}


@dataclass(frozen=True)
class Drawn:
    """The deciding numbers that share a region, drawn."""

    name: str
    region: str
    whose_region: str
    svg: Markup


@dataclass(frozen=True)
class Decider:
    """The number that decides, in a line: what it is, drawn, and what was claimed."""

    name: str
    number: str
    region: str
    whose: str
    svg: Markup


@dataclass(frozen=True)
class Piece:
    """A number among others, as a line of a table."""

    name: str
    outcome: Outcome
    number: str
    region: str
    svg: Markup
    decides: bool


@dataclass(frozen=True)
class Pieces:
    """All numbers of a judgement that joins several; the region that all share."""

    title: str
    region: str
    lines: tuple[Piece, ...]


@dataclass(frozen=True)
class Panel:
    """A statement with its judgements: of an erratum there is one for each reading."""

    heading: str
    text: str
    outcome: Outcome
    decider: Decider
    reasons: tuple[tuple[str, str], ...]
    drawn: tuple[Drawn, ...]
    margins: tuple[str, ...]
    pieces: tuple[Pieces, ...]


def panels(verdict: SavedVerdict, sheet: Sheet) -> tuple[Panel, ...]:
    """Lay out what decides a claim; of an erratum as printed, then as corrected.

    Args:
        verdict: The claim and its verdict.
        sheet: Where the page keeps what its drawings share.
    """
    if verdict.kind is not Kind.ERRATUM:
        return (_panel(verdict, "", "", sheet, corrected=False),)
    printed = _panel(verdict, "Printed", verdict.printed, sheet, corrected=False)
    if verdict.as_corrected is None:
        return (printed,)
    corrected = _panel(verdict, "Corrected", verdict.corrected, sheet, corrected=True)
    return printed, corrected


def _panel(
    verdict: SavedVerdict, heading: str, text: str, sheet: Sheet, *, corrected: bool
) -> Panel:
    found = [
        (_WHOSE[name], judged, because)
        for name, ruling in verdict.rulings
        if (judged := _judged(ruling, corrected)) is not None
        for because in [ruling.corrected_because if corrected else ruling.because]
    ]
    whose, counts, _ = found[-1]  # the committed run, where there is one, stands last
    return Panel(
        heading=heading,
        text=text,
        outcome=counts.outcome,
        decider=_decider(whose, counts.deciding, sheet),
        reasons=tuple((whose, because) for whose, _, because in found),
        drawn=_drawn(verdict.kind, [(whose, judged) for whose, judged, _ in found]),
        margins=tuple(leaf.margin for leaf in counts.ours),
        pieces=tuple(
            _pieces(whose, judged, sheet)
            for whose, judged, _ in found
            if len(judged.leaves) > 1
        ),
    )


def _decider(whose: str, leaf: SavedJudgement, sheet: Sheet) -> Decider:
    return Decider(
        name=leaf.name,
        number=told(leaf) if leaf.region is not None else leaf.note or "not judged",
        region=region_told(leaf.region),
        whose=whose,
        svg=small_gauge(leaf, scale_for([leaf]), sheet),
    )


def _judged(ruling: SavedRuling, corrected: bool) -> SavedJudgement | None:
    return ruling.corrected if corrected else ruling.judged


def _drawn(
    kind: Kind, found: Iterable[tuple[str, SavedJudgement]]
) -> tuple[Drawn, ...]:
    groups: dict[Region, list[Strip]] = {}
    for whose, judged in found:
        leaf = judged.deciding
        if leaf.region is not None:
            groups.setdefault(leaf.region, []).append(Strip(whose, leaf))
    return tuple(
        Drawn(_named(strips), region_told(region), _source(region, kind), gauge(strips))
        for region, strips in groups.items()
    )


def _named(strips: list[Strip]) -> str:
    names = list(dict.fromkeys(strip.leaf.name for strip in strips))
    if len(names) == 1:
        return names[0]
    return "; ".join(f"{strip.whose}: {strip.leaf.name}" for strip in strips)


def _source(region: Region, kind: Kind) -> str:
    if region.source == "paper":
        return "as we state it" if kind is Kind.BEYOND else "as the paper has it"
    return "a margin of ours" if region.source == "ours" else "what rounding allows"


def _pieces(whose: str, judged: SavedJudgement, sheet: Sheet) -> Pieces:
    leaves = judged.leaves
    groups: dict[Region | None, list[SavedJudgement]] = {}
    for leaf in leaves:
        groups.setdefault(leaf.region, []).append(leaf)
    scales = {region: scale_for(members) for region, members in groups.items()}
    lines = tuple(
        Piece(
            name=leaf.name,
            outcome=leaf.outcome,
            number=told(leaf),
            region=region_told(leaf.region),
            svg=small_gauge(leaf, scales[leaf.region], sheet),
            decides=leaf is judged.deciding,
        )
        for leaf in leaves
    )
    same = sum(leaf.outcome is judged.outcome for leaf in leaves)
    title = f"All {len(leaves)} numbers, {_RUNS[whose]}; {same} say {judged.outcome}"
    shared = region_told(leaves[0].region) if len(groups) == 1 else ""
    return Pieces(title, shared, lines)
