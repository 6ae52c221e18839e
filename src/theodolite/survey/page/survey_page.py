"""A survey, or two of them, laid out for the template."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from theodolite.core import Rows, above, below, to_strict_json
from theodolite.pages import (
    GaugeNumber,
    HeatCells,
    SharedSvg,
    as_tables,
    draw_heat_key,
    draw_strip,
    embedded_json,
    format_count,
    gauge_scale,
    render_page,
)

from ..records.finding import CHECK, Finding
from ..records.telling import batches_of
from ..records.whole_survey import Survey
from .cross_section import draw_section, section_of
from .depth import Column, Side, columns_of, owner_of, side_of
from .network_charts import network_charts, spectrum
from .tables import number_lines, which
from .words import measure_words, word

if TYPE_CHECKING:
    from ..comparing.comparison import Comparison

_SEVERITIES = ("sick", "warning", "note", "good")
# The page shows this many lines of a table; downloads and blocks have the others.
_LONGEST_TABLE = 400
# With more blocks than this, over all sides, the page leaves out the spectra of blocks
# and the numbers of modules, so that it stays below 3 MB; downloads have them.
_MOST_SPECTRA, _MOST_WITH_MODULES = 450, 600


def survey_page(survey: Survey) -> str:
    """Return the page of one survey."""
    return _page([side_of(survey)], columns_of(survey), _data(survey))


def comparison_page(comparison: "Comparison") -> str:
    """Return the page of two surveys, with a switch between before and after."""
    before, after = comparison.before, comparison.after
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
    data = {
        "kind": "comparison",
        "before": _data(before),
        "after": _data(after),
        "differences": as_tables(to_strict_json(list(comparison.rows()))),
        "rest": comparison.outline(),
    }
    sides = [side_of(before, "a", "before"), side_of(after, "b", "after")]
    return _page(sides, columns, data, comparison)


def filled(template: str, content: dict[str, Any], data: Any, shared: SharedSvg) -> str:
    """Return the page of a template, with data that readers can download from it."""
    text, packed = embedded_json(data)
    return render_page(
        "theodolite.survey.page",
        template,
        {**content, "data": text, "packed": packed},
        shared=shared,
        styles=["charts.css", "survey.css"],
        scripts=["survey.js"],
    )


def _page(
    sides: Sequence[Side],
    columns: tuple[Column, ...],
    data: dict[str, Any],
    comparison: "Comparison | None" = None,
) -> str:
    shared, section = SharedSvg(), section_of(sides, columns)
    last = sides[-1].survey
    groups = {"": last.findings}
    if comparison is not None:
        groups = {
            "Gone": comparison.gone,
            "New": comparison.new,
            "Kept": comparison.kept,
        }
    counted = Counter(one.severity for one in last.findings)
    titles = {one.rule: one.title for one in last.findings}
    content = {
        "title": " → ".join(side.survey.title for side in sides),
        "sides": [_side(one) | {"drawn": draw_section(section, one)} for one in sides],
        "heat_key": draw_heat_key(HeatCells(section.ratios).reach)
        if section.ratios
        else None,
        "groups": [
            {"word": name, "findings": _findings(findings, columns, shared)}
            for name, findings in groups.items()
        ],
        "tally": [(name, counted[name]) for name in _SEVERITIES if counted[name]],
        "advice": [
            {"advice": one, "answers": titles.get(one.rule, "")} for one in last.advice
        ],
        "comparison": _compared(comparison) if comparison is not None else None,
        "blocks": [_block(one, sides, len(columns)) for one in columns],
        "pictures": network_charts(sides),
        "tables": _tables(sides),
    }
    return filled("survey.html.j2", content, data, shared)


def _side(side: Side) -> dict[str, Any]:
    survey = side.survey
    modes = survey.norm_layers.items()
    return {
        "key": side.key,
        "word": side.word,
        "survey": survey,
        "missing": [
            {"measure": measure_words(one.measure), "outcome": one}
            for one in survey.measured
            if one.status != "done"
        ],
        "batches": batches_of(survey),
        "made_up": survey.inputs.startswith("made up"),
        "settings": {
            **survey.settings,
            **{f"norms in {mode} mode": names for mode, names in modes if names},
        },
    }


def _findings(
    findings: Iterable[Finding], columns: Sequence[Column], shared: SharedSvg
) -> list[dict[str, Any]]:
    ordered = sorted(findings, key=lambda one: _SEVERITIES.index(one.severity))
    places = {b.name: c.index for c in columns for b in c.blocks.values()}
    return [
        {
            "finding": one,
            "word": word(one.quantity),
            "gauge": _gauge(one, shared),
            "where": [
                (name, places.get(owner_of(name, set(places)) or ""))
                for name in one.where
            ],
        }
        for one in ordered
    ]


def _gauge(finding: Finding, shared: SharedSvg) -> str | None:
    """Draw the number behind a finding, over the region in which its rule fires."""
    value, threshold = finding.value, finding.threshold
    known = math.isfinite(value) and math.isfinite(threshold)
    if finding.quantity == CHECK or not known:
        return None
    error = finding.error if finding.error and math.isfinite(finding.error) else 0.0
    number = GaugeNumber(
        look=finding.severity,
        value=value,
        low=value - error,
        high=value + error,
        region=above(threshold) if finding.above else below(threshold),
    )
    return draw_strip(number, gauge_scale([number]).widened(0.15, 0.15), shared)


def _block(column: Column, sides: Sequence[Side], n_columns: int) -> dict[str, Any]:
    """Return what the page shows for a selected block."""
    n_blocks = n_columns * len(sides)
    rows = [side.rows_of(column) for side in sides]
    names = [f"{side.word} {column.name}".strip() for side in sides]
    blocks = [column.blocks.get(side.key) for side in sides]
    shown = [
        [
            row
            for row in mine
            if row["quantity"] != "singular_value"
            and ("module" not in row or n_blocks <= _MOST_WITH_MODULES)
        ]
        for mine in rows
    ]
    label = f"Singular values of {column.name} by share"
    return {
        "index": column.index,
        "name": column.name,
        "facts": [
            {
                "word": side.word,
                "items": [
                    ("Kind", block.kind),
                    ("Skip", block.skip or "none"),
                    ("Norms", _norms(block.norms)),
                    (
                        "Activations",
                        ", ".join(dict.fromkeys(block.activations)) or "none",
                    ),
                    ("Parameters", format_count(block.n_parameters)),
                ],
            }
            for side, block in zip(sides, blocks, strict=True)
            if block is not None
        ],
        "lines": number_lines(shown, [block and block.name for block in blocks]),
        "spectrum": spectrum(rows, sides, names, label)
        if n_blocks <= _MOST_SPECTRA
        else None,
    }


def _norms(norms: Sequence[str]) -> str:
    """Return norms in words.

    Example:
        >>> _norms(["batch:pre", "batch:pre", "layer:post"])
        'batch (pre) × 2, layer (post)'
    """
    parts = (norm.partition(":") for norm in norms)
    counted = Counter(f"{kind} ({at})" if at else kind for kind, _, at in parts)
    words = [name if n == 1 else f"{name} × {n}" for name, n in counted.items()]
    return ", ".join(words) or "none"


def _tables(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Return one table per measure."""
    tables = []
    for measure in dict.fromkeys(
        one.measure for side in sides for one in side.survey.measured if len(one.rows)
    ):
        outcomes = [
            next((one for one in side.survey.measured if one.measure == measure), None)
            for side in sides
        ]
        rows = [one.rows if one is not None else Rows() for one in outcomes]
        lines = number_lines(rows)
        modes = (str(row.get("norm_mode", "")) for mine in rows for row in mine)
        tables.append(
            {
                "name": measure_words(measure),
                "lines": lines[:_LONGEST_TABLE],
                "n_lines": len(lines),
                "modes": ", ".join(dict.fromkeys(mode for mode in modes if mode)),
                "costs": [one.cost for one in outcomes if one is not None],
            }
        )
    return tables


def _compared(comparison: "Comparison") -> dict[str, Any]:
    return {
        "caveats": comparison.caveats,
        "not_compared": comparison.not_compared,
        "lines": [
            {"difference": one, "word": word(one.quantity), "which": which(one.labels)}
            for one in comparison.whole()
        ],
        "n_changed": sum(one.changed != "no" for one in comparison.differences),
        "n": len(comparison.differences),
    }


def _data(survey: Survey) -> dict[str, Any]:
    """Return a survey as in its JSON, with the rows of each measure as tables."""
    content = survey.to_dict()
    measured = [
        {**one, "rows": as_tables(one["rows"])} for one in content.pop("measured")
    ]
    return {"kind": "survey", **content, "measured": measured}
