"""A survey as text for a terminal and HTML for a notebook."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from theodolite.core import norm_words

from .finding import CHECK
from .headlines import headlines

if TYPE_CHECKING:
    from .finding import Finding
    from .whole_survey import Survey

COLUMNS = 100
_FINDINGS = 8
_ADVICE = 3
_UNSUPPORTED = 2
_MARKS = {"sick": "✗", "warning": "!", "note": "·", "good": "✓"}


def shown_in_terminal(survey: "Survey") -> str:
    """Return at most 25 lines: findings first, then the numbers that matter."""
    return "\n".join(_cut(line) for line in _lines(survey))


def _lines(survey: "Survey") -> Iterator[str]:
    yield title_of(survey)
    yield from _findings(survey)
    width = max((len(name) for name, _ in headlines(survey)), default=0)
    for name, text in headlines(survey):
        yield f"  {name:<{width}}  {text}"
    yield from _advice(survey)
    for said in survey.unsupported[:_UNSUPPORTED]:
        yield f"  UNSUPPORTED {said}"
    if (more := len(survey.unsupported) - _UNSUPPORTED) > 0:
        yield f"  UNSUPPORTED … and {more} more, see .unsupported"
    if survey.incomplete:
        yield f"  INCOMPLETE: it was aborted before {', '.join(survey.incomplete)}"
    if survey.why_empty:
        yield f"  nothing was measured: {survey.why_empty}"
    elif missing := missing_of(survey):
        yield f"  not measured: {missing}"
    yield cost_of(survey)


def title_of(survey: "Survey") -> str:
    """Return one line that describes the surveyed model."""
    made_up = " on MADE-UP inputs" if survey.inputs.startswith("made up") else ""
    return (
        f"{survey.title}: {survey.n_parameters:,} parameters in {len(survey.blocks)} "
        f"blocks, {norm_words(survey.norm_mode, survey.norm_layers)}{made_up}"
        f"{batches_of(survey)}"
    )


def batches_of(survey: "Survey") -> str:
    """Return words for the measured batch, if several were given."""
    given = survey.settings.get("n_batches", 1)
    return f", batch 1 of {given}" if given > 1 else ""


def missing_of(survey: "Survey") -> str:
    """Return which measures are not done, with their status."""
    return ", ".join(
        f"{each.measure} ({each.status})"
        for each in survey.measured
        if each.status != "done"
    )


def cost_of(survey: "Survey") -> str:
    """Return what the survey cost, and its seed."""
    return (
        f"  effort {survey.effort:g}, {format_seconds(survey.cost.wall_s)}, "
        f"{survey.cost.passes:,} passes, seed {survey.seed}"
    )


def format_seconds(seconds: float) -> str:
    """Return seconds in words.

    Example:
        >>> format_seconds(0.25), format_seconds(75), format_seconds(7200)
        ('0.25 s', '75 s', '2 h')
    """
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.2g} min" if seconds < 3600 else f"{seconds / 3600:.2g} h"


def _findings(survey: "Survey") -> Iterator[str]:
    done = [each.measure for each in survey.measured if each.status == "done"]
    if done and not any(f.severity in ("sick", "warning") for f in survey.findings):
        so_far = " so far" if survey.incomplete else ""
        yield f"✓ nothing wrong found{so_far}; checked: {', '.join(done)}"
    for each in survey.findings[:_FINDINGS]:
        yield _finding(each)
    if (more := len(survey.findings) - _FINDINGS) > 0:
        yield f"  … and {more} more findings, see .findings"


def _finding(finding: "Finding") -> str:
    """Return a line that fits; the name of the quantity is cut, not its number."""
    head = f"{_MARKS[finding.severity]} {finding.title}"
    if finding.quantity == CHECK:
        return f"{head}: {', '.join(finding.where)}" if finding.where else head
    number, quantity = _number(finding), finding.quantity
    room = COLUMNS - len(head) - len(number) - 4
    if len(quantity) > room:
        quantity = f"{quantity[: max(room - 1, 0)]}…"
    return f"{head} ({quantity} {number})"


def number_of(finding: "Finding") -> str:
    """Return the number behind a finding, against its threshold; a check's name."""
    if finding.quantity == CHECK:
        return finding.rule
    return f"{finding.quantity} {_number(finding)}"


def _number(finding: "Finding") -> str:
    error = "" if finding.error is None else f" ± {finding.error:.2g}"
    sign = ">" if finding.above else "<"
    on = finding.on_samples
    return f"{finding.value:.4g}{error}{on} {sign} {finding.threshold:g}"


def _advice(survey: "Survey") -> Iterator[str]:
    for each in survey.advice[:_ADVICE]:
        tried = "" if each.trial is None else f" (tried: helped {each.trial.helped})"
        yield f"→ {each.title}{tried}"
    if (more := len(survey.advice) - _ADVICE) > 0:
        yield f"  … and {more} more pieces of advice, see .advice"


def _cut(line: str) -> str:
    line = " ".join(line.splitlines())
    return line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…"


def shown_in_notebook(survey: "Survey") -> str:
    """Return a view of HTML: findings and advice, then a table of numbers."""
    items = "".join(
        f"<li><b>{_MARKS[each.severity]} {escape(each.title)}</b>: "
        f"{escape(each.says)} <code>{escape(number_of(each))}</code></li>"
        for each in survey.findings
    )
    numbers = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in headlines(survey)
    )
    advice = "".join(
        f"<details><summary>{escape(each.title)}</summary>"
        f"<pre>{escape(each.code)}</pre></details>"
        for each in survey.advice
    )
    notes = [
        *(f"<b>Unsupported:</b> {escape(said)}" for said in survey.unsupported),
        *([f"Not measured: {escape(m)}"] if (m := missing_of(survey)) else []),
        escape(f"Inputs: {survey.inputs}") if survey.inputs else "",
        escape(cost_of(survey)),
    ]
    return (
        f"<div><h4>{escape(title_of(survey))}</h4><ul>{items}</ul>{advice}"
        f"<table>{numbers}</table><p>{'<br>'.join(n for n in notes if n)}</p></div>"
    )
