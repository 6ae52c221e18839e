"""What the command line prints of claims and studies."""

import json
from typing import Any

import typer


def claim_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the claims of a judged study, each with the names of both."""
    wanted = ("claim", "place", "kind", "statement", "verdict", "because", "numbers")
    return [
        {
            "paper": summary["paper"]["name"],
            "study": summary["study"]["name"],
            "scale": summary["scale"],
            **{key: claim[key] for key in wanted},
            **resting(claim),
        }
        for claim in summary["claims"]
    ]


def resting(claim: dict[str, Any]) -> dict[str, Any]:
    """Return what a verdict rests on, and what the run's own rows say beside it."""
    return {"rests_on": claim.get("rests_on", ""), "alone": claim.get("alone")}


def print_json(value: Any) -> None:
    """Print a value for machines."""
    from theodolite.core import strict

    typer.echo(json.dumps(strict(value), indent=2, ensure_ascii=False))


def print_claims(rows: list[dict[str, Any]]) -> None:
    """Print claims by study, then how many hold."""
    colours = {"HOLDS": "green", "FAILS": "red", "UNDECIDED": "yellow"}
    width = max((len(row["claim"]) for row in rows), default=0)
    last = None
    for row in rows:
        name = f"{row['paper']}/{row['study']}"
        if name != last:
            typer.echo(f"{name}{' (' + row['scale'] + ')' if row['scale'] else ''}")
            last = name
        verdict = row["verdict"] or "not run"
        mark = typer.style(f"{verdict:<9}", fg=colours.get(verdict))
        kind = "erratum" if row["kind"] == "erratum" else ""
        source = f"  [{row['rests_on']}]" if row["rests_on"] else ""
        line = f"  {mark} {row['claim']:<{width}}  {kind:<7}  {row['place']}{source}"
        typer.echo(line)
    if rows:
        typer.echo(_tally(rows))


def print_summary(summary: dict[str, Any]) -> None:
    """Print a judged study: its claims, reasons and numbers."""
    name = f"{summary['paper']['name']}/{summary['study']['name']}"
    typer.echo(f"{name}: {summary['study']['title']}")
    typer.echo(
        f"scale {summary['scale']}, judged {summary['judged']}, "
        f"{summary['cost']['cpu_s']:.1f} s of processor time\n"
    )
    for claim in summary["claims"]:
        typer.echo(f"{claim['verdict']:<9} {claim['claim']} ({claim['place']})")
        typer.echo(f"          {claim['because']}")
        for label, number in claim["numbers"].items():
            typer.echo(f"          {label}: {_number(number)}")


def _tally(rows: list[dict[str, Any]]) -> str:
    claims = [row["verdict"] for row in rows if row["kind"] == "claim"]
    errata = [row["verdict"] for row in rows if row["kind"] == "erratum"]
    parts = [
        f"{claims.count('HOLDS')} hold",
        f"{claims.count('FAILS')} fail",
        f"{claims.count('UNDECIDED')} undecided",
    ]
    if None in claims:
        parts.append(f"{claims.count(None)} not run")
    told = (
        f"{len(claims)} claims: {', '.join(parts)}; "
        f"{errata.count('HOLDS')} of {len(errata)} errata confirmed"
    )
    resting = sum(bool(row["rests_on"]) for row in rows)
    return f"{told}; {resting} verdicts rest on committed runs" if resting else told


def _number(number: dict[str, float | None]) -> str:
    value, error = number["value"], number["error"]
    if value is None:
        return "not finite"
    return f"{value:.6g}" if error is None else f"{value:.6g} ± {error:.2g}"
