"""A paper's story and its balance: verdicts gathered from all of its studies."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from theodolite.core import Kind, SavedNumber, SavedVerdict, Summary, tally
from theodolite.report.collect import JudgedRun


@dataclass(frozen=True)
class Told:
    """A verdict as the story tells it: which claim, where it stands, key numbers."""

    id: str
    claim: SavedVerdict
    numbers: Mapping[str, SavedNumber]


def arrange(runs: Iterable[JudgedRun]) -> list[JudgedRun]:
    """Put the runs of one paper in the paper's own order."""
    runs = list(runs)
    studies = _newest([run.summary for run in runs]).paper.studies
    order = {name: place for place, name in enumerate(studies)}

    def place(run: JudgedRun) -> tuple[int, str]:
        name = run.summary.study.name
        return order.get(name, len(order)), name

    return sorted(runs, key=place)


def balance(studies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many claims hold, fail, are undecided or wrong in print.

    Args:
        studies: The studies of one paper as laid out for the page.
    """
    runs: list[Summary] = [study["run"] for study in studies]
    claims = [one for run in runs for one in run.claims]
    done = {run.study.name for run in runs}
    return {
        "tally": tally(claims),
        "beyond": sum(one.kind is Kind.BEYOND for one in claims),
        "committed": sum(one.rests_on == "committed" for one in claims),
        "scales": Counter(run.scale for run in runs),
        "missing": [name for name in _newest(runs).paper.studies if name not in done],
    }


def story(studies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the chapters of a paper, each with the verdicts that are there.

    Claims without a verdict are listed as not run, by study.
    """
    known = {
        f"{study['run'].study.name}/{entry['claim'].name}": entry
        for study in studies
        for entry in study["claims"]
    }
    chapters = []
    for chapter in _newest([study["run"] for study in studies]).paper.story:
        found = [one for one in chapter.findings if one.claim in known]
        lost = [one.claim for one in chapter.findings if one.claim not in known]
        chapters.append(
            {
                "title": chapter.title,
                "text": chapter.text,
                "findings": [_told(known[one.claim], one.numbers) for one in found],
                "missing": sorted({name.partition("/")[0] for name in lost}),
            }
        )
    return chapters


def capital(text: str) -> str:
    """Begin a text with a capital, unless a symbol begins it.

    Example:
        >>> capital("the ratio"), capital("cond(H) is"), capital("n = 2")
        ('The ratio', 'cond(H) is', 'n = 2')
    """
    word = text.partition(" ")[0].rstrip(",:;")
    plain = word.isalpha() and word.isascii() and (len(word) > 1 or word == "a")
    return text[:1].upper() + text[1:] if plain else text


def sentence(text: str) -> str:
    """Write a reason as a sentence.

    Example:
        >>> sentence("the ratio is constant"), sentence("ρ = 0 there.")
        ('The ratio is constant.', 'ρ = 0 there.')
    """
    return capital(text) + ("" if text.endswith((".", "!", "?")) else ".")


def _told(entry: Mapping[str, Any], wanted: Sequence[str]) -> Told:
    claim: SavedVerdict = entry["claim"]
    chosen = [name for name in claim.numbers if name.startswith(tuple(wanted))]
    numbers = {name: claim.numbers[name] for name in chosen}
    return Told(entry["id"], claim, numbers)


def _newest(runs: Sequence[Summary]) -> Summary:
    return max(runs, key=lambda run: run.judged)
