"""A survey, or two of them, laid out for the template."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theodolite.core import Rows, above, below, to_strict_json
from theodolite.pages import (
    GaugeNumber,
    SharedSvg,
    as_tables,
    draw_strip,
    embedded_json,
    gauge_scale,
    render_page,
)

from ..records.finding import CHECK, Finding
from ..records.text import batches_of, verdict_of
from ..records.whole_survey import Survey
from ..records.words import measure_words, word
from .depth import Side, block_table, depth_charts, place_of, side_of
from .network_charts import network_charts
from .tables import number_lines, which, written

if TYPE_CHECKING:
    from ..comparing.comparison import Comparison

_SEVERITIES = ("sick", "warning", "note", "good")
# The page shows this many lines of a table; downloads have the others.
_LONGEST_TABLE = 400


def survey_page(survey: Survey) -> str:
    """Return the page of one survey."""
    return _page([side_of(survey)], _data(survey))


def comparison_page(comparison: "Comparison") -> str:
    """Return the page of two surveys, with a switch between before and after."""
    before, after = comparison.before, comparison.after
    pairs = list(enumerate(comparison.pairs))
    first = {pair.before.name: at for at, pair in pairs if pair.before is not None}
    second = {pair.after.name: at for at, pair in pairs if pair.after is not None}
    data = {
        "kind": "comparison",
        "before": _data(before),
        "after": _data(after),
        "differences": as_tables(to_strict_json(list(comparison.rows()))),
        "rest": comparison.outline(),
    }
    sides = [
        side_of(before, "a", "before", first),
        side_of(after, "b", "after", second),
    ]
    return _page(sides, data, comparison)


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
    data: dict[str, Any],
    comparison: "Comparison | None" = None,
) -> str:
    shared, places = (
        SharedSvg(),
        {k: v for side in sides for k, v in side.places.items()},
    )
    last = sides[-1].survey
    groups = {"": last.findings}
    if comparison is not None:
        gone, new, kept = comparison.gone, comparison.new, comparison.kept
        groups = {"Gone": gone, "New": new, "Kept": kept}
    counted = Counter(one.severity for one in last.findings)
    titles = {one.rule: one.title for one in last.findings}
    content = {
        "title": " → ".join(side.survey.title for side in sides),
        "sides": [_side(one) for one in sides],
        "verdict": verdict_of(last),
        "groups": [
            {"word": name, "findings": _findings(findings, places, shared)}
            for name, findings in groups.items()
            if findings
        ],
        "tally": [(name, counted[name]) for name in _SEVERITIES if counted[name]],
        "advice": [
            {"advice": one, "answers": titles.get(one.rule, "")} for one in last.advice
        ],
        "comparison": _compared(comparison) if comparison is not None else None,
        "by_depth": depth_charts(sides),
        "blocks": block_table(sides),
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
    findings: Iterable[Finding], places: Mapping[str, int], shared: SharedSvg
) -> list[dict[str, Any]]:
    ordered = sorted(findings, key=lambda one: _SEVERITIES.index(one.severity))
    return [
        {
            "finding": one,
            "word": word(one.quantity),
            "gauge": _gauge(one, shared),
            "number": _number(one),
            "limit": written(one.quantity, one.threshold),
            "where": [(name, place_of(name, places)) for name in one.where],
        }
        for one in ordered
    ]


def _number(finding: Finding) -> str:
    """Write the number behind a finding, empty for a check."""
    if finding.quantity == CHECK:
        return ""
    if not math.isfinite(finding.value):
        return f"not finite{finding.on_samples}"
    number = written(finding.quantity, finding.value, finding.error)
    return number + finding.on_samples


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
            {
                "difference": one,
                "word": word(one.quantity),
                "which": which(one.labels),
                "before": written(one.quantity, one.before, one.before_error),
                "after": written(one.quantity, one.after, one.after_error),
                "low": written(one.quantity, one.low),
                "high": written(one.quantity, one.high),
            }
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
