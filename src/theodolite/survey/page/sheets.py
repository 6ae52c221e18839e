"""A survey, or two of them, laid out for the template."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theodolite.core import Row, Rows, strict
from theodolite.survey.page.blocks import described, told_value
from theodolite.survey.page.columns import (
    Column,
    Side,
    columns_of,
    owner_of,
    side_of,
)
from theodolite.survey.page.cross_section import draw_section, section_of
from theodolite.survey.page.embedded import as_tables
from theodolite.survey.page.gauge import draw_gauge
from theodolite.survey.page.heat import key_of
from theodolite.survey.page.pictures import pictures_of
from theodolite.survey.page.template import fill
from theodolite.survey.page.words import measure_words, word
from theodolite.survey.records.finding import Advice, Finding
from theodolite.survey.records.whole_survey import Survey

if TYPE_CHECKING:
    from theodolite.survey.comparing.comparison import Comparison

_SEVERITIES = ("sick", "warning", "note", "good")
# Labels that say which number a row is, in the order in which a table shows them.
_WHICH = ("block", "module", "optimiser", "rank", "share", "length", "node", "sample")
# Longer tables are in the downloads, and by block; here are their first lines.
_LONGEST_TABLE = 400


def survey_page(survey: Survey) -> str:
    """Return the page of one survey."""
    columns = columns_of(survey)
    return fill(
        "survey.html.j2",
        {
            **_common([side_of(survey)], columns),
            "title": survey.title,
            "groups": [{"word": "", "findings": _findings(survey.findings, columns)}],
            "tally": _tally(survey.findings),
            "advice": _advice(survey.advice, survey.findings),
            "comparison": None,
        },
        _data(survey),
    )


def comparison_page(comparison: "Comparison") -> str:
    """Return the page of two surveys, with a switch between before and after."""
    before, after = comparison.before, comparison.after
    sides = [side_of(before, "a", "before"), side_of(after, "b", "after")]
    columns = tuple(
        Column(
            index=place,
            name=pair.name,
            blocks={
                key: block
                for key, block in (("a", pair.before), ("b", pair.after))
                if block is not None
            },
        )
        for place, pair in enumerate(comparison.pairs)
    )
    groups = [
        {"word": "Gone", "findings": _findings(comparison.gone, columns)},
        {"word": "New", "findings": _findings(comparison.new, columns)},
        {"word": "Kept", "findings": _findings(comparison.kept, columns)},
    ]
    return fill(
        "survey.html.j2",
        {
            **_common(sides, columns),
            "title": f"{before.title} → {after.title}",
            "groups": groups,
            "tally": _tally(after.findings),
            "advice": _advice(after.advice, after.findings),
            "comparison": _compared(comparison),
        },
        {
            "kind": "comparison",
            "before": _data(before),
            "after": _data(after),
            "differences": as_tables(strict(list(comparison.rows()))),
            "rest": comparison.outline(),
        },
    )


def _common(sides: Sequence[Side], columns: tuple[Column, ...]) -> dict[str, Any]:
    section = section_of(sides, columns)
    return {
        "sides": [
            {
                "key": side.key,
                "word": side.word,
                "survey": side.survey,
                "section": draw_section(section, side),
                "missing": _missing(side.survey),
                "made_up": side.survey.inputs.startswith("made up"),
                "settings": _settings(side.survey),
            }
            for side in sides
        ],
        "heat_key": key_of(section.reach) if section.heated else None,
        "blocks": [described(one, sides, len(columns)) for one in columns],
        "pictures": pictures_of(sides),
        "tables": _tables(sides),
        "spans_two": len(sides) > 1,
    }


def _tally(findings: Iterable[Finding]) -> list[tuple[str, int]]:
    counted = Counter(one.severity for one in findings)
    return [(name, counted[name]) for name in _SEVERITIES if counted[name]]


def _findings(
    findings: Iterable[Finding], columns: Sequence[Column]
) -> list[dict[str, Any]]:
    ordered = sorted(findings, key=lambda one: _SEVERITIES.index(one.severity))
    places = {b.name: c.index for c in columns for b in c.blocks.values()}
    return [
        {
            "finding": one,
            "word": word(one.quantity),
            "gauge": draw_gauge(one),
            "where": [
                (name, places.get(owner_of(name, set(places)) or ""))
                for name in one.where
            ],
        }
        for one in ordered
    ]


def _advice(
    advice: Iterable[Advice], findings: Iterable[Finding]
) -> list[dict[str, Any]]:
    titles = {one.rule: one.title for one in findings}
    return [{"advice": one, "answers": titles.get(one.rule, "")} for one in advice]


def _missing(survey: Survey) -> list[dict[str, Any]]:
    return [
        {"measure": measure_words(one.measure), "outcome": one}
        for one in survey.measured
        if one.status != "done"
    ]


def _settings(survey: Survey) -> list[tuple[str, Any]]:
    return [(str(key), _flat(value)) for key, value in survey.settings.items()]


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_flat(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_flat(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _tables(sides: Sequence[Side]) -> list[dict[str, Any]]:
    names = dict.fromkeys(
        one.measure for side in sides for one in side.survey.measured if len(one.rows)
    )
    return [_table(name, sides) for name in names]


def _table(measure: str, sides: Sequence[Side]) -> dict[str, Any]:
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    modes: list[str] = []
    for place, side in enumerate(sides):
        outcome = next((m for m in side.survey.measured if m.measure == measure), None)
        for row in outcome.rows if outcome is not None else Rows():
            key = (row["quantity"], _which(row))
            empty = {"word": word(key[0]), "quantity": key[0], "which": key[1]}
            line = lines.setdefault(key, {**empty, "values": ["—"] * len(sides)})
            line["values"][place] = told_value(row)
            modes.append(str(row.get("norm_mode", "")))
    return {
        "name": measure_words(measure),
        "measure": measure,
        "lines": list(lines.values())[:_LONGEST_TABLE],
        "n_lines": len(lines),
        "modes": ", ".join(dict.fromkeys(mode for mode in modes if mode)),
        "costs": [
            one.cost
            for side in sides
            for one in side.survey.measured
            if one.measure == measure
        ],
    }


def _which(row: Row) -> str:
    parts = []
    for label in _WHICH:
        if (told := row.get(label)) is not None:
            plain = f"{told:.4g}" if isinstance(told, float) else str(told)
            named = label in ("block", "module", "optimiser")
            parts.append(plain if named else f"{label} {plain}")
    return ", ".join(parts)


def _compared(comparison: "Comparison") -> dict[str, Any]:
    return {
        "caveats": comparison.caveats,
        "lines": [
            {"difference": one, "word": word(one.quantity), "which": _which(one.labels)}
            for one in comparison.whole()
        ],
        "n_changed": sum(one.changed != "no" for one in comparison.differences),
        "n": len(comparison.differences),
    }


def _data(survey: Survey) -> dict[str, Any]:
    """Return a survey as its JSON is, with the rows of each measure as columns."""
    content = survey.to_dict()
    measured = [
        {**one, "rows": as_tables(one["rows"])} for one in content.pop("measured")
    ]
    return {"kind": "survey", **content, "measured": measured}
