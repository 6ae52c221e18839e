"""One page per paper: its studies, every claim with its verdict, and its errata.

Verdicts are of a run of all studies at the quick scale, kept in ``verdicts.json``.
``python -m handbook.paper_pages OUT`` writes them from the results in a folder, and the
``README.md`` of each paper's package from them, and the tally of the main one; without
OUT, the READMEs of the packages alone.
"""

import argparse
import json
import re
from importlib import import_module
from itertools import chain, groupby
from pathlib import Path

from handbook.settings import HERE, Nav
from theodolite.core import Claim, Grade, Kind, Outcome, count_verdicts
from theodolite.studies import Entry, Paper, catalogue

KEPT = HERE / "verdicts.json"
README = HERE.parent / "README.md"
TALLY = re.compile(r"^\d+ claims: .*$", re.MULTILINE)


def write(pages: Path, nav: Nav) -> None:
    """Write the pages of all papers."""
    place = pages / "papers"
    place.mkdir()
    verdicts = kept_verdicts()
    errata = _errata_by_title((HERE.parent / "docs" / "errata.md").read_text())
    for paper, entries in groupby(catalogue(), key=lambda entry: entry.paper):
        head = f"# {paper.title}\n\n{paper.authors} ({paper.year}). <{paper.url}>\n"
        parts = [head, _LEGEND]
        parts += [_study(entry, verdicts) for entry in entries]
        parts.append(errata.get(paper.title, ""))
        (place / f"{paper.name}.md").write_text("\n".join(parts))
        nav.add("Check a paper", paper.title, f"papers/{paper.name}.md")


_LEGEND = """Verdicts are of a run at the quick scale;
[how they are reached](../verdicts.md). What is marked *erratum* is
wrong as printed: its verdict is of the print, then of what is right. *Shortened*: the
run is smaller than the paper's. *Depends on the reading*: natural readings differ.
"""


def kept_verdicts() -> dict[str, list[str]]:
    """Return verdicts by ``study/claim``; of an erratum, as printed and corrected.

    A verdict is its outcome and the words beside it, as in "HOLDS, shortened".
    """
    return json.loads(KEPT.read_text())


def outcome_of(verdict: str) -> str:
    """Return the outcome alone."""
    return verdict.partition(",")[0]


def _study(entry: Entry, verdicts: dict[str, list[str]]) -> str:
    study = entry.study
    lines = [
        f"## {study.title}\n",
        f"`{entry.name}`: {' '.join(study.summary.split())}\n",
        "| verdict | claim | where | what it says |",
        "|---|---|---|---|",
    ]
    for claim in study.claims:
        ends = verdicts[f"{entry.name}/{claim.name}"]
        kind = "" if str(claim.kind) == "claim" else f" *{_kind(claim)}*"
        said = " → ".join(_marked(verdict) for verdict in ends)
        cells = (said, f"`{claim.name}`{kind}", claim.place, claim.statement)
        lines.append("| " + " | ".join(_in_a_cell(str(cell)) for cell in cells) + " |")
    return "\n".join([*lines, ""])


def readme(paper: Paper) -> str:
    """Return the README of a paper's package: its argument, verdicts, errata, index."""
    entries = [entry for entry in catalogue() if entry.paper == paper]
    verdicts = kept_verdicts()
    claims = [(e.name, claim) for e in entries for claim in e.study.claims]
    parts = [
        f"# {paper.title}",
        f"{paper.authors} ({paper.year}). {paper.url}".strip(),
        "Written by `python -m handbook.paper_pages`; edit the studies, not this page. "
        "Verdicts are of a run at the quick scale.",
        "## What it says",
        *(f"**{one.title}**: {' '.join(one.text.split())}" for one in paper.story),
    ]
    own = all(str(claim.kind) == "beyond" for _, claim in claims)
    of_paper = [(s, c) for s, c in claims if own or str(c.kind) == "claim"]
    for title, outcome in _OUTCOMES.items():
        chosen = [
            (s, c)
            for s, c in of_paper
            if outcome_of(verdicts[f"{s}/{c.name}"][0]) == outcome
        ]
        if chosen or outcome != Outcome.NOT_RUN:
            head = f"## {title} ({len(chosen)})"
            parts += [head, _bullets(chosen, verdicts)]
    errata = [(s, c) for s, c in claims if str(c.kind) == "erratum"]
    for title, grades in _GRADES.items():
        wrong = [(s, c) for s, c in errata if c.grade in grades]
        if wrong:
            parts += [f"## {title} ({len(wrong)})", _errata_rows(wrong, verdicts)]
    parts += ["## Index", "| place | claim | verdict | file |\n|---|---|---|---|\n"]
    folder = _folder(paper)
    rows = []
    for study, claim in claims:
        paths = (folder / study).glob("*.py"), (folder / "shared").rglob("*.py")
        naming = (
            p for p in sorted(chain(*paths)) if f'"{claim.name}"' in p.read_text()
        )
        # Names of some claims are put together where they are used.
        path = next(naming, folder / study / "claims.py")
        file = path.relative_to(folder).as_posix()
        said = " → ".join(verdicts[f"{study}/{claim.name}"])
        cells = (claim.place, f"`{study}/{claim.name}`", said, f"[{file}]({file})")
        rows.append("| " + " | ".join(map(_in_a_cell, cells)) + " |")
    parts[-1] += "\n".join(sorted(rows, key=_natural))
    return "\n\n".join(part for part in parts if part) + "\n"


_OUTCOMES = {
    "What holds": "HOLDS",
    "What fails": "FAILS",
    "What is undecided": "UNDECIDED",
    "What was not run": "NOT RUN",
}
_GRADES = {
    "What is wrong in print": (Grade.FALSE, Grade.LOOSE),
    "What is wrong only as we read it": (Grade.READING,),
}


def write_readmes() -> None:
    """Write the README of every paper of this distribution."""
    for paper in dict.fromkeys(entry.paper for entry in catalogue()):
        (_folder(paper) / "README.md").write_text(readme(paper))


def _folder(paper: Paper) -> Path:
    return Path(import_module(paper.package).__file__ or "").parent


def _bullets(claims: list[tuple[str, Claim]], verdicts: dict) -> str:
    lines = []
    for study, claim in claims:
        _, _, words = verdicts[f"{study}/{claim.name}"][0].partition(", ")
        text = " ".join(claim.statement.split())
        name = f"`{study}/{claim.name}`{f', {words}' if words else ''}"
        lines.append(f"- {claim.place}: {text} ({name})")
    return "\n".join(lines)


def _errata_rows(claims: list[tuple[str, Claim]], verdicts: dict) -> str:
    lines = ["| place | grade | printed | right | verdicts |", "|---|---|---|---|---|"]
    for study, claim in claims:
        said = " → ".join(verdicts[f"{study}/{claim.name}"])
        cells = (claim.place, claim.grade, claim.printed, claim.corrected, said)
        lines.append("| " + " | ".join(map(_in_a_cell, cells)) + " |")
    return "\n".join(lines)


def _kind(claim: Claim) -> str:
    erratum = claim.kind is Kind.ERRATUM
    return f"{claim.kind}, {claim.grade}" if erratum else str(claim.kind)


def _natural(text: str) -> list:
    """Sort Figure 2 before Figure 10."""
    return [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", text)]


def _marked(verdict: str) -> str:
    look = outcome_of(verdict).replace(" ", "-")
    return f'<span class="verdict-{look}">{verdict}</span>'


def _in_a_cell(text: str) -> str:
    """Return text that a table can hold: bars of formulas are those of LaTeX."""
    flat = " ".join(text.split())
    return re.sub(r"\$[^$]*\$", _without_bars, flat).replace("|", r"\|")


def _without_bars(formula: re.Match[str]) -> str:
    return formula[0].replace(r"\|", r"\Vert ").replace("|", r"\vert ")


def _errata_by_title(text: str) -> dict[str, str]:
    """Return the sections of the page of errata, by the title of the paper."""
    sections = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = section.partition("\n")
        sections[heading.rpartition(" (")[0]] = f"## Errata\n{rest}"
    return sections


def main() -> None:
    """Keep the verdicts of a run of all studies."""
    from theodolite.studies import last_summary

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", help="results at the quick scale")
    out = parser.parse_args().out
    if out is None:
        write_readmes()
        return
    kept, verdicts = {}, []
    for entry in catalogue():
        latest = last_summary(out, entry)
        if latest is None or latest[1].scale != "quick":
            parser.error(f"{entry.full_name} was not run at the quick scale in {out}")
        for claim in latest[1].claims:
            right = claim.ruling.corrected
            said = [", ".join([claim.verdict, *claim.words])]
            said += [] if right is None else [str(right.outcome)]
            kept[f"{entry.name}/{claim.claim}"] = said
            verdicts.append(claim)
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in kept.items())
    KEPT.write_text(f"{{\n{lines}\n}}\n")
    README.write_text(
        TALLY.sub(lambda _: str(count_verdicts(verdicts)), README.read_text())
    )
    write_readmes()


if __name__ == "__main__":
    main()
