"""A survey as text: one screen, or everything that it found."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from theodolite.core import norm_words
from theodolite.pages import format_seconds

from .finding import CHECK
from .headlines import amount, headlines
from .words import STATUSES, word

if TYPE_CHECKING:
    from .finding import Advice, Finding
    from .whole_survey import Survey

COLUMNS, LINES = 80, 24
# Lines for findings and for advice; the numbers take the rest of the screen.
_FINDINGS, _ADVICE = 9, 4
_MARKS = {"sick": "✗", "warning": "!", "note": "·", "good": "✓"}
_HELPED = {"yes": "it helped", "no": "no difference", "harm": "it did harm"}


def short_text(survey: "Survey") -> str:
    """Return a survey on one screen: findings, advice, then the numbers that matter.

    Lines that are too long are wrapped, never cut; what does not fit is counted.
    """
    numbers = headlines(survey)
    wide = max((len(name) for name, _ in numbers), default=0)
    top = [
        *_opening(survey),
        *_fitting([_finding(f) for f in survey.findings], _FINDINGS, "findings"),
        *_fitting([_advice(a) for a in survey.advice], _ADVICE, "pieces of advice"),
    ]
    end = [*_unsupported(survey), *_missing(survey), cost_of(survey)]
    end += _faster(survey.faster[:1], len(survey.faster) - 1)
    lines = [wrapped(f"  {name:<{wide}}  {told}", wide + 4) for name, told in numbers]
    room = LINES - len(top) - len(end)
    return "\n".join([*top, *_fitting(lines, room, "numbers"), *end])


def full_text(survey: "Survey") -> str:
    """Return all findings with their meaning, all advice with its code, all reasons."""
    lines = _opening(survey)
    for finding in survey.findings:
        lines += ["", *_finding(finding), *wrapped(f"  {finding.says}", 2)]
        facts = f"where: {', '.join(finding.where)}; " if finding.where else ""
        facts += f"source: {finding.source or 'ours'} ({finding.confidence})"
        lines += wrapped(f"  {facts}", 2)
    for advice in survey.advice:
        lines += ["", *_advice(advice), textwrap.indent(advice.code.rstrip(), "    ")]
    lines.append("")
    for name, told in headlines(survey):
        lines += wrapped(f"  {name}: {told}", 4)
    for said in survey.unsupported:
        lines += wrapped(f"  unsupported: {said}", 4)
    for each in survey.measured:
        if each.status != "done":
            lines += wrapped(
                f"  {each.measure} {STATUSES[each.status]}: {each.reason}", 4
            )
    lines += wrapped(f"  inputs: {survey.inputs}", 4) if survey.inputs else []
    settings = [
        f"{key.replace('_', ' ')} {v}" for key, v in survey.settings.items() if v
    ]
    lines += wrapped(f"  settings: {', '.join(settings)}", 4) if settings else []
    lines.append(cost_of(survey))
    for each in survey.faster:
        code = textwrap.indent(each.code.rstrip(), "    ")
        lines += ["", *_faster([each]), code]
    return "\n".join(lines)


def title_of(survey: "Survey") -> str:
    """Return one line that describes the surveyed model."""
    made_up = " on MADE-UP inputs" if survey.inputs.startswith("made up") else ""
    n = len(survey.blocks)
    blocks = f" in {n} block{'s' if n > 1 else ''}" if n else ""
    norms = norm_words(survey.norm_mode, survey.norm_layers)
    known = survey.blocks or survey.norm_layers  # not if it was aborted before
    return (
        f"{survey.title}: {survey.n_parameters:,} parameters{blocks}"
        f"{f', {norms}' if known else ''}{made_up}{batches_of(survey)}"
    )


def batches_of(survey: "Survey") -> str:
    """Return words for the measured batch, if several were given."""
    given = survey.settings.get("n_batches", 1)
    return f", batch 1 of {given}" if given > 1 else ""


def verdict_of(survey: "Survey") -> str:
    """Return what was checked if nothing is wrong, else an empty string."""
    names = {"checks": "first aid"}
    done = [
        names.get(each.measure, each.measure)
        for each in survey.measured
        if each.status == "done"
    ]
    wrong = any(f.severity in ("sick", "warning") for f in survey.findings)
    if wrong or not done:
        return ""
    so_far = " so far" if survey.incomplete else ""
    left_out = ", ".join(survey.settings.get("ignored", ()))
    ignored = f"; ignored: {left_out}" if left_out else ""
    return f"nothing wrong found{so_far}{ignored}; checked: {', '.join(done)}"


def behind(finding: "Finding") -> str:
    """Return the number behind a finding against its threshold, empty for a check."""
    if finding.quantity == CHECK:
        return ""
    of = finding.quantity
    number = amount(finding.value, finding.error, of=of) + finding.on_samples
    beyond = "above" if finding.above else "below"
    limit = f", {beyond} {amount(finding.threshold, of=of)}"
    known = math.isfinite(finding.value) and math.isfinite(finding.threshold)
    name = word(of).name
    return f"{name[:1].lower()}{name[1:]} {number}{limit if known else ''}"


def names_of(names: Sequence[str], most: int) -> str:
    """Return names by commas, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def cost_of(survey: "Survey") -> str:
    """Return what the survey cost, and its seed."""
    return (
        f"  effort {survey.effort:g}, {format_seconds(survey.cost.wall_s)}, "
        f"{survey.cost.passes:,} passes, seed {survey.seed}"
    )


def _opening(survey: "Survey") -> list[str]:
    lines = wrapped(title_of(survey), 2)
    if survey.incomplete:
        names = ", ".join(survey.incomplete)
        lines += wrapped(f"! INCOMPLETE, aborted: no result of {names}", 2)
    if verdict := verdict_of(survey):
        lines += wrapped(f"✓ {verdict}", 2)
    return lines


def _finding(finding: "Finding") -> list[str]:
    place = finding.where and f" at {names_of(finding.where, 3)}"
    tail = f": {number}" if (number := behind(finding)) else place or ""
    head = f"{_MARKS[finding.severity]} {finding.title} [{finding.rule}]{tail}"
    symptoms = "; ".join(one.title for one in finding.symptoms)
    return [
        *wrapped(head, 2),
        *wrapped(f"    symptoms: {symptoms}" if symptoms else "", 6),
    ]


def _advice(advice: "Advice") -> list[str]:
    helped = advice.trial.helped if advice.trial else ""
    tried = f" (tried: {_HELPED.get(helped, helped)})" if helped else ""
    return wrapped(f"→ {advice.title}{tried}", 2)


def _faster(hints: Sequence["Advice"], more: int = 0) -> list[str]:
    """Return lines on optional changes that were faster in trials."""
    others = f"; and {more} more, see .faster" if more > 0 else ""
    lines: list[str] = []
    for each in hints:
        tried = f" (optional; tried: {each.trial.said})" if each.trial else ""
        lines += wrapped(f"  Could be faster: {each.title}{tried}{others}", 4)
    return lines


def _unsupported(survey: "Survey") -> list[str]:
    first, *more = survey.unsupported or ("",)
    others = f"; and {len(more)} more, see .unsupported" if more else ""
    return wrapped(f"  unsupported: {first}{others}", 4) if first else []


def _missing(survey: "Survey") -> list[str]:
    if survey.why_empty:
        return wrapped(f"  nothing was measured: {survey.why_empty}", 4)
    missing = [
        f"{m.measure} ({STATUSES[m.status]})"
        for m in survey.measured
        if m.status != "done"
    ]
    return wrapped(f"  not measured: {', '.join(missing)}", 4) if missing else []


def _fitting(items: Sequence[list[str]], room: int, what: str) -> Iterator[str]:
    """Yield the items that fit into so many lines, then how many do not."""
    sizes = [len(lines) for lines in items]
    kept = len(items)
    while kept and sum(sizes[:kept]) + (kept < len(items)) > max(room, 1):
        kept -= 1
    for lines in items[:kept]:
        yield from lines
    if kept < len(items):
        yield f"  … and {len(items) - kept} more {what}: .print(full=True)"


def wrapped(line: str, indent: int) -> list[str]:
    """Return lines that fit a terminal; a number stays on the line of its error."""
    own = line[: len(line) - len(line.lstrip())]
    glued = line.lstrip().replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    lines = textwrap.wrap(
        glued, COLUMNS, initial_indent=own, subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )  # fmt: skip
    return [one.replace("\N{NO-BREAK SPACE}", " ") for one in lines]
