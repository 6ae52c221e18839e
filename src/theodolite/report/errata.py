"""The page of errata: what papers print, what is right, and the numbers that say so."""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from theodolite.core import (
    Grade,
    Kind,
    SavedJudgement,
    SavedVerdict,
    Summary,
    count_verdicts,
)
from theodolite.pages import GaugeNumber, format_interval, format_number, format_region
from theodolite.runs import write_text

from .finished_runs import JudgedRun, OnDamage, in_order_of_paper, judged_runs

_HEAD = """# Errata

Statements of the papers that are wrong or leave out what they need. `make errata`
writes this page from a run, so that no number on it is typed by hand. An erratum is
confirmed where the numbers refute what is printed and bear out what is right;
[how a verdict is reached](verdicts.md) says what the intervals mean. Each has a grade:
*false* (a counterexample is shown), *loose* (true with other constants or conditions)
or *reading* (wrong only as we read it, and not counted as an error of the paper). What
is printed may be true where it is loose: then what is right alone confirms it.
"""


def write_errata(
    root: Path | str,
    destination: Path | str,
    *,
    damaged: OnDamage = lambda damage: None,
) -> Path:
    """Write the page of errata from the latest run of every study.

    Args:
        root: Folder that holds ``runs/``.
        destination: File to write.
        damaged: Called with every file that is left out because it is damaged.

    Returns:
        The file written.

    Raises:
        TheodoliteError: No run is finished, or none can be read.
    """
    return write_text(destination, errata_page(judged_runs(root, damaged=damaged)))


def errata_page(runs: Iterable[JudgedRun]) -> str:
    """Return the page of errata of these runs, as Markdown."""
    parts = [_HEAD]
    for _, group in groupby(runs, key=lambda run: run.summary.paper.name):
        summaries = [run.summary for run in in_order_of_paper(group)]
        errata = [
            (one, summary)
            for summary in summaries
            for one in summary.claims
            if one.kind is Kind.ERRATUM
        ]
        if errata:
            paper = summaries[0].paper
            counts = count_verdicts(one for one, _ in errata)
            read = counts.read_otherwise
            rest = f"; {read} are wrong only as we read them" if read else ""
            parts.append(
                f"## {paper.title} ({paper.authors}, {paper.year})\n\n"
                f"{counts.confirmed} of {counts.errata} errata are confirmed "
                f"({counts.errata - counts.loose} false, {counts.loose} loose){rest}.\n"
            )
            parts += [_erratum(one, summary) for one, summary in errata]
    return "\n".join(parts)


def _erratum(verdict: SavedVerdict, summary: Summary) -> str:
    ruling = verdict.ruling
    grade = verdict.grade or Grade.FALSE
    state = f" ({grade}{'' if verdict.confirmed else ', not confirmed'})"
    lines = [
        f"### `{verdict.claim}`{state}",
        "",
        f"{verdict.place}. {verdict.statement}",
        "",
        f"- Printed: {verdict.printed}",
        f"- Right: {verdict.corrected}",
        _judged("printed", ruling.judged),
    ]
    if ruling.corrected is not None:
        lines.append(_judged("corrected", ruling.corrected))
    lines += [
        f"- {name}: {format_number(number.value, number.error)}"
        for name, number in verdict.numbers.items()
    ]
    return "\n".join([*lines, _origin(verdict, summary), ""])


def _judged(reading: str, judged: SavedJudgement) -> str:
    leaf = judged.deciding
    start = f"- As {reading} {judged.outcome}: "
    if leaf.region is None:
        return start + (leaf.note or "nothing could be judged")
    number = format_interval(GaugeNumber.of(leaf))
    if leaf.value is not None and leaf.error is not None:
        number = f"{number}, error {format_number(float(f'{leaf.error:.2g}'))}"
    n = len(judged.leaves)
    beside = f" (one of {n} numbers)" if n > 1 else ""
    region = format_region(leaf.region)
    return f"{start}{leaf.name} = {number}; claimed {region}{beside}"


def _origin(verdict: SavedVerdict, summary: Summary) -> str:
    study = f"`{summary.study.name}` at scale {summary.scale}"
    if verdict.rests_on == "own":
        return f"- Computed by {study}"
    on = f" on {verdict.on}" if verdict.on else ""
    alone = f"; its own rows say {verdict.alone} as printed" if verdict.alone else ""
    return f"- Computed by the committed run at paper scale{on} of {study}{alone}"
