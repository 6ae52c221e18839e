"""Prepare a claim for the template: its deciding number, drawn, and the others."""

from collections.abc import Iterable, Sequence
from typing import Any

from theodolite.core import Kind, Region, SavedJudgement, SavedVerdict
from theodolite.pages import (
    GaugeNumber,
    SharedSvg,
    draw_gauge,
    draw_strip,
    format_interval,
    format_region,
    gauge_scale,
)

_WHOSE = {"own": "this run", "committed": "committed"}
_RUNS = {"this run": "this run", "committed": "committed run"}

# A table of a claim shows this many of its numbers, or a page could not be read; where
# all say the same, it shows as many as make the doubt visible.
_MOST, _ENOUGH = 8, 4

# A judgement and why it came out so, of this run or of a committed one.
Judged = tuple[str, SavedJudgement, str]


def panels(verdict: SavedVerdict, shared: SharedSvg) -> list[dict[str, Any]]:
    """Return the deciding panels of a claim; for an erratum, as printed and corrected.

    Args:
        verdict: The claim and its verdict.
        shared: Shapes and styles that the page's drawings share.
    """
    if verdict.kind is not Kind.ERRATUM:
        return [_panel(verdict, shared)]
    printed = _panel(verdict, shared, "Printed")
    if verdict.as_corrected is None:
        return [printed]
    return [printed, _panel(verdict, shared, "Corrected", corrected=True)]


def _panel(
    verdict: SavedVerdict,
    shared: SharedSvg,
    heading: str = "",
    *,
    corrected: bool = False,
) -> dict[str, Any]:
    rulings: list[Judged] = []
    for name, ruling in verdict.rulings:
        judged = ruling.corrected if corrected else ruling.judged
        because = ruling.corrected_because if corrected else ruling.because
        if judged is not None:
            rulings.append((_WHOSE[name], judged, because))
    whose, counts, _ = rulings[-1]  # the committed run, if there is one, comes last
    return {
        "heading": heading,
        "outcome": counts.outcome,
        "decider": _decider(whose, counts.deciding, shared),
        "reasons": [(whose, because) for whose, _, because in rulings],
        "drawn": _drawn(verdict.kind, rulings, shared),
        "readings": _readings(counts),
        "margins": [leaf.margin for leaf in counts.ours],
        "tables": [_table(whose, counts, shared)] if len(counts.leaves) > 1 else [],
    }


def _readings(judged: SavedJudgement) -> list[dict[str, Any]]:
    """Return what the readings of a claim say, those of one sentence together.

    A name in parts, such as ``output; digits, depth 10``, shares all but its last.
    """
    notes: dict[str, dict[tuple[str, str], list[str]]] = {}
    for one in judged.readings:
        shared, _, name = one.name.rpartition("; ")
        said = notes.setdefault(one.note, {})
        said.setdefault((shared, one.outcome), []).append(name)
    return [
        {
            "note": note,
            "said": [(shared, *one, names) for (shared, *one), names in said.items()],
            "n": sum(map(len, said.values())),
        }
        for note, said in notes.items()
    ]


def _decider(whose: str, leaf: SavedJudgement, shared: SharedSvg) -> dict[str, Any]:
    """Return the line of the number that decides a claim."""
    number = GaugeNumber.of(leaf)
    judged = leaf.region is not None
    return {
        "name": leaf.name,
        "number": format_interval(number) if judged else leaf.note or "not judged",
        "region": format_region(leaf.region),
        "whose": whose,
        "svg": draw_strip(number, gauge_scale([number]), shared),
    }


def _drawn(
    kind: Kind, rulings: Iterable[Judged], shared: SharedSvg
) -> list[dict[str, Any]]:
    """Return a gauge of the deciding numbers of each region."""
    groups: dict[Region, list[tuple[str, SavedJudgement]]] = {}
    for whose, judged, _ in rulings:
        leaf = judged.deciding
        if leaf.region is not None:
            groups.setdefault(leaf.region, []).append((whose, leaf))
    return [
        {
            "name": _names(leaves),
            "region": format_region(region),
            "source": _source(region, kind),
            "svg": _gauge(leaves, region, shared),
        }
        for region, leaves in groups.items()
    ]


def _gauge(
    leaves: Sequence[tuple[str, SavedJudgement]], region: Region, shared: SharedSvg
) -> str:
    rows = [(whose, GaugeNumber.of(leaf)) for whose, leaf in leaves]
    said = [
        f"{whose}: {number.name} {format_interval(number)}, {number.look.upper()}"
        for whose, number in rows
    ]
    label = f"{'; '.join(said)}. Claimed region: {format_region(region)}."
    return draw_gauge(rows, shared, label)


def _names(leaves: Sequence[tuple[str, SavedJudgement]]) -> str:
    names = list(dict.fromkeys(leaf.name for _, leaf in leaves))
    if len(names) == 1:
        return names[0]
    return "; ".join(f"{whose}: {leaf.name}" for whose, leaf in leaves)


def _source(region: Region, kind: Kind) -> str:
    if region.source == "paper":
        return "as we state it" if kind is Kind.BEYOND else "as the paper has it"
    return "a margin of ours" if region.source == "ours" else "what rounding allows"


def _table(whose: str, judged: SavedJudgement, shared: SharedSvg) -> dict[str, Any]:
    """Return a table of the numbers of a claim that has several.

    Of very many it shows the one that decides, then those that say otherwise, then
    those that are least sure.
    """
    leaves = judged.leaves

    def weight(leaf: SavedJudgement) -> tuple[bool, bool, float]:
        sure = -min(leaf.p_holds, leaf.p_fails)
        return leaf is not judged.deciding, leaf.outcome is judged.outcome, sure

    ranked = sorted(range(len(leaves)), key=lambda place: weight(leaves[place]))
    same = sum(leaf.outcome is judged.outcome for leaf in leaves)
    most = _ENOUGH if same == len(leaves) else _MOST
    shown = [leaves[place] for place in sorted(ranked[:most])]
    some = "All" if len(shown) == len(leaves) else f"{most} of"
    regions = {leaf.region for leaf in leaves}
    scales = {
        region: gauge_scale(GaugeNumber.of(o) for o in leaves if o.region == region)
        for region in regions
    }
    return {
        "title": f"{some} {len(leaves)} numbers, {_RUNS[whose]}; "
        f"{same} say {judged.outcome}",
        "omitted": len(leaves) - len(shown),
        "region": format_region(leaves[0].region) if len(regions) == 1 else "",
        "lines": [
            {
                "name": leaf.name,
                "outcome": leaf.outcome,
                "number": format_interval(number := GaugeNumber.of(leaf)),
                "region": format_region(leaf.region),
                "svg": draw_strip(number, scales[leaf.region], shared),
                "decides": leaf is judged.deciding,
            }
            for leaf in shown
        ],
    }
