"""The report: one HTML page on the latest run of every study."""

from collections.abc import Iterable
from pathlib import Path

from theodolite.core import Outcome, count_verdicts
from theodolite.pages import SharedSvg, render_page
from theodolite.runs import write_text

from .explorers import EXPLORER_SCRIPTS
from .finished_runs import JudgedRun, OnDamage, judged_runs, latest
from .layout import lay_out

# Scripts of every report, beside those that all pages have; explorers bring their own.
SCRIPTS = ("narrow.js", "follow.js", "details.js")


def write_report(
    root: Path | str,
    destination: Path | str | None = None,
    *,
    damaged: OnDamage = lambda damage: None,
) -> Path:
    """Write one self-contained HTML file on the latest run of every study.

    Args:
        root: Folder that holds ``runs/``.
        destination: File to write, ``report.html`` in ``root`` by default.
        damaged: Called with every file that is left out because it is damaged.

    Returns:
        The file written.

    Raises:
        TheodoliteError: No run is finished, or none can be read.
    """
    target = Path(root) / "report.html" if destination is None else Path(destination)
    return write_text(target, render(judged_runs(root, damaged=damaged)))


def render(runs: Iterable[JudgedRun]) -> str:
    """Return the report on these runs as one HTML page that loads nothing.

    Of several runs of a study the one judged last is shown. The same runs give the
    same page: its date is that of the last verdict.
    """
    shown, shared = latest(runs), SharedSvg()
    papers = lay_out(shown, shared)
    explorers = dict.fromkeys(o["explorer"]["name"] for o in papers if o["explorer"])
    files = [file for name in explorers for file in EXPLORER_SCRIPTS[name]]
    styles = [f"explorers/{name}/style.css" for name in explorers]
    content = {
        "papers": papers,
        "counts": count_verdicts(
            claim for run in shown for claim in run.summary.claims
        ),
        "n_claims": sum(len(run.summary.claims) for run in shown),
        "n_studies": len(shown),
        "outcomes": list(Outcome),
        "date": max((run.summary.judged for run in shown), default=""),
    }
    return render_page(
        "theodolite.report",
        "report.html.j2",
        content,
        shared=shared,
        styles=["report.css", "print.css", *styles],
        scripts=[*SCRIPTS, *(f"explorers/{file}" for file in files)],
    )
