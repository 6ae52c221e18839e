"""The finished runs of a folder: the latest of each study."""

from collections.abc import Iterable
from pathlib import Path

from theodolite.core import TheodoliteError
from theodolite.report.summary import Summary, figure_files, parse_summary
from theodolite.runs import RunFolder, runs_in


def latest_summaries(root: Path | str) -> list[Summary]:
    """Return the latest finished run of every study, by paper and study name.

    Args:
        root: Folder that holds ``runs/``.

    Raises:
        TheodoliteError: Where no run is finished, or a summary cannot be read.
    """
    found = (_summary(run) for run in runs_in(Path(root)))
    chosen = latest(one for one in found if one is not None)
    if not chosen:
        raise TheodoliteError(
            f"no finished runs in {root}: run `theodolite run all` first"
        )
    return chosen


def latest(summaries: Iterable[Summary]) -> list[Summary]:
    """Keep the summary judged last of each study, sorted by year, paper and study."""
    newest: dict[tuple[str, str], Summary] = {}
    for one in summaries:
        key = (one.paper, one.study)
        if key not in newest or one.judged > newest[key].judged:
            newest[key] = one
    return sorted(newest.values(), key=lambda one: (one.year, one.paper, one.study))


def _summary(run: RunFolder) -> Summary | None:
    text = run.read("summary.json")
    if text is None:
        return None
    drawn = {name: run.read(name) for name in figure_files(text)}
    return parse_summary(
        text,
        source=str(run.path / "summary.json"),
        info=run.info,
        svg={name: svg for name, svg in drawn.items() if svg is not None},
    )
