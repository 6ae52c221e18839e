"""A page a paper: its studies, every claim with its verdict, and its errata.

Verdicts are of a run of all studies at the quick scale, kept in ``verdicts.json``;
``python -m handbook.paper_pages OUT`` writes them anew from the results in a folder.
"""

import argparse
import json
import re
from itertools import groupby
from pathlib import Path

from handbook.settings import HERE, Nav
from theodolite.studies import Entry, catalogue

KEPT = HERE / "verdicts.json"


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
        nav.add("Papers", paper.title, f"papers/{paper.name}.md")


_LEGEND = """Verdicts are of a run at the quick scale;
[how they are reached](../verdicts.md). What is marked *erratum* is
wrong as printed: its verdict is of the print, then of what is right.
"""


def kept_verdicts() -> dict[str, list[str]]:
    """Return verdicts by ``study/claim``; of an erratum, as printed and corrected."""
    return json.loads(KEPT.read_text())


def _study(entry: Entry, verdicts: dict[str, list[str]]) -> str:
    study = entry.study
    lines = [
        f"## {study.title}\n",
        f"`{entry.name}`: {' '.join(study.summary.split())}\n",
        "| verdict | claim | where | what it says |",
        "|---|---|---|---|",
    ]
    for claim in study.claims:
        found = verdicts[f"{entry.name}/{claim.name}"]
        kind = "" if str(claim.kind) == "claim" else f" *{claim.kind}*"
        said = " → ".join(_marked(verdict) for verdict in found)
        cells = (said, f"`{claim.name}`{kind}", claim.place, claim.statement)
        lines.append("| " + " | ".join(_in_a_cell(str(cell)) for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _marked(verdict: str) -> str:
    return f'<span class="verdict-{verdict}">{verdict}</span>'


def _in_a_cell(text: str) -> str:
    """Return text that a table can hold: bars of formulas are those of LaTeX."""
    flat = " ".join(text.split())
    return re.sub(r"\$[^$]*\$", _without_bars, flat).replace("|", r"\|")


def _without_bars(formula: re.Match[str]) -> str:
    return formula[0].replace(r"\|", r"\Vert ").replace("|", r"\vert ")


def _errata_by_title(text: str) -> dict[str, str]:
    """Return the sections of the page of errata, by the title of the paper."""
    found = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = section.partition("\n")
        found[heading.rpartition(" (")[0]] = f"## Errata\n{rest}"
    return found


def main() -> None:
    """Keep the verdicts of a run of all studies."""
    from theodolite.studies import last_summary

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder of results, at the quick scale")
    out = parser.parse_args().out
    found = {}
    for entry in catalogue():
        latest = last_summary(out, entry)
        if latest is None or latest[1].scale != "quick":
            parser.error(f"{entry.full_name} was not run at the quick scale in {out}")
        for claim in latest[1].claims:
            right = claim.ruling.corrected
            said = [claim.verdict, *([] if right is None else [str(right.outcome)])]
            found[f"{entry.name}/{claim.claim}"] = said
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    KEPT.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
