"""A survey as one HTML file."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from theodolite.core import above, below
from theodolite.pages import (
    GaugeNumber,
    SharedSvg,
    as_tables,
    draw_strip,
    embedded_json,
    format_count,
    gauge_scale,
    render_page,
)
from theodolite.runs import write_text

from ..records.finding import CHECK, Finding
from ..records.outcomes import Measured
from ..records.text import batches_of, verdict_of
from ..records.whole_survey import Survey
from ..records.words import STATUSES, word
from .charts import BY_DEPTH, by_place, charts_of, place_of, places_of
from .tables import number_lines, written, written_value

_SEVERITIES = ("sick", "warning", "note", "good")
# The page shows this many lines of a table; downloads have the others.
_LONGEST_TABLE = 400


def write_page(survey: Survey, path: str | Path) -> Path:
    """Write the page atomically, and return its path.

    Raises:
        RunError: It cannot be written there.
    """
    return write_text(path, survey_page(survey))


def survey_page(survey: Survey) -> str:
    """Return the page as text."""
    shared, places = SharedSvg(), places_of(survey)
    counted = Counter(one.severity for one in survey.findings)
    titles = {one.rule: one.title for one in survey.findings}
    content = {
        "survey": survey,
        "batches": batches_of(survey),
        "made_up": survey.inputs.startswith("made up"),
        "verdict": verdict_of(survey),
        "tally": [(name, counted[name]) for name in _SEVERITIES if counted[name]],
        "findings": _findings(survey.findings, places, shared),
        "advice": [
            {"advice": one, "answers": titles.get(one.rule, "")}
            for one in survey.advice
        ],
        "faster": [{"advice": one, "answers": ""} for one in survey.faster],
        **charts_of(survey),
        "blocks": _block_table(survey, places),
        "missing": [
            {
                "measure": word(one.measure).name,
                "status": STATUSES[one.status],
                "outcome": one,
            }
            for one in survey.measured
            if one.status != "done"
        ],
        "tables": [_table(one) for one in survey.measured if len(one.rows)],
        "settings": {
            **survey.settings,
            **{f"norms in {m} mode": n for m, n in survey.norm_layers.items() if n},
        },
        "data": embedded_json(_data(survey)),
    }
    return render_page(
        "theodolite.survey.page",
        "survey.html.j2",
        content,
        shared=shared,
        styles=["charts.css", "survey.css"],
        scripts=["survey.js"],
    )


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


def _block_table(survey: Survey, places: Mapping[str, int]) -> dict[str, Any]:
    """Return the blocks in order of depth, with their numbers."""
    rows = {name: by_place(survey.rows(), name, places) for name in BY_DEPTH}
    shown = [quantity for quantity in BY_DEPTH if rows[quantity]]
    lines = [
        {
            "place": place,
            "name": block.name,
            "facts": [
                block.kind,
                block.skip or "—",
                _counted(block.norms),
                _counted(block.activations),
                format_count(block.n_parameters),
            ],
            "numbers": [
                written_value(rows[quantity][place]) if place in rows[quantity] else "—"
                for quantity in shown
            ],
        }
        for place, block in enumerate(survey.blocks)
    ]
    return {"words": [word(quantity) for quantity in shown], "lines": lines}


def _counted(names: Iterable[str]) -> str:
    """Return names with how often each comes.

    Example:
        >>> _counted(["batch:pre", "batch:pre", "layer:post"])
        'batch (pre) × 2, layer (post)'
    """
    parts = (name.partition(":") for name in names)
    counts = Counter(f"{kind} ({at})" if at else kind for kind, _, at in parts)
    words = [name if n == 1 else f"{name} × {n}" for name, n in counts.items()]
    return ", ".join(words) or "—"


def _table(outcome: Measured) -> dict[str, Any]:
    """Return the numbers of a measure."""
    lines = number_lines(outcome.rows)
    modes = dict.fromkeys(str(row.get("norm_mode", "")) for row in outcome.rows)
    return {
        "name": word(outcome.measure).name,
        "lines": lines[:_LONGEST_TABLE],
        "n_lines": len(lines),
        "modes": ", ".join(filter(None, modes)),
        "cost": outcome.cost,
    }


def _data(survey: Survey) -> dict[str, Any]:
    """Return a survey as in its JSON, with the rows of each measure as tables."""
    content = survey.to_dict()
    measured = [
        {**one, "rows": as_tables(one["rows"])} for one in content.pop("measured")
    ]
    return {**content, "measured": measured}
