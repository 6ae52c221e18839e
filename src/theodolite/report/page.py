"""The report: a front page with the tally, and one page per paper."""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from theodolite.core import Outcome, count_verdicts
from theodolite.pages import SharedSvg, render_page
from theodolite.runs import write_text

from .explorers import EXPLORER_SCRIPTS
from .finished_runs import JudgedRun, OnDamage, judged_runs, latest
from .layout import Names, lay_out

# Scripts of every paper's page, beside those that all pages have; explorers bring
# their own.
SCRIPTS = ("narrow.js", "follow.js", "details.js")
_STYLES = ("report.css", "print.css")
_PACKAGE = "theodolite.report"


def write_report(
    root: Path | str,
    destination: Path | str | None = None,
    *,
    damaged: OnDamage = lambda damage: None,
) -> Path:
    """Write the report on the latest run of every study: self-contained HTML pages.

    A page per paper stands beside the front page: ``report-NAME.html`` beside
    ``report.html``.

    Args:
        root: Folder that holds ``runs/``.
        destination: Front page to write, ``report.html`` in ``root`` by default.
        damaged: Called with every file that is left out because it is damaged.

    Returns:
        The front page.

    Raises:
        TheodoliteError: No run is finished, or none can be read.
    """
    target = Path(root) / "report.html" if destination is None else Path(destination)
    # The front page comes first: where it cannot be written nothing else is.
    for name, page in render(judged_runs(root, damaged=damaged), target.name).items():
        write_text(target.parent / name, page)
    return target


def render(runs: Iterable[JudgedRun], front: str = "report.html") -> dict[str, str]:
    """Return the pages of the report by file name, the front page first.

    Each is HTML that loads nothing. Of several runs of a study the one judged last is
    shown. The same runs give the same pages: their date is that of the last verdict.

    Args:
        runs: The runs to show.
        front: File name of the front page; names of the others begin like it.
    """
    shown, names = latest(runs), Names()
    papers, pages = [], {}
    for name, group in groupby(shown, key=lambda run: run.summary.paper.name):
        shared = SharedSvg()
        paper = lay_out(list(group), shared)
        file = f"{Path(front).stem}-{names.new(name).removeprefix('r-')}.html"
        explorer = paper["explorer"] and paper["explorer"]["name"]
        files = EXPLORER_SCRIPTS.get(explorer, ())
        pages[file] = render_page(
            _PACKAGE,
            "paper_page.html.j2",
            {"paper": paper, "outcomes": list(Outcome), "front": quote(front)},
            shared=shared,
            styles=[*_STYLES, *([f"explorers/{explorer}/style.css"] * bool(files))],
            scripts=[*SCRIPTS, *(f"explorers/{one}" for one in files)],
        )
        papers.append({**paper, "address": quote(file)})
    claims = [claim for run in shown for claim in run.summary.claims]
    content = {
        "papers": papers,
        "counts": count_verdicts(claims),
        "n_claims": len(claims),
        "n_studies": len(shown),
        "outcomes": list(Outcome),
        "date": max((run.summary.judged for run in shown), default=""),
    }
    first = render_page(
        _PACKAGE, "front.html.j2", content, shared=SharedSvg(), styles=_STYLES
    )
    return {front: first, **pages}
