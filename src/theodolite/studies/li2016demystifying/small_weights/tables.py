"""What is drawn of theorem 1, and printed beside its predictions."""

import math

from theodolite.core import Roads, Row, Rows

NAMES = {"basis": "3 samples, width 3", "detour": "4 samples, width 3"}


def table(roads: Roads) -> Rows:
    """Return the picture, and norms and bounds of each case's first set of points."""
    norms = roads.measured.where(quantity="max_norm")
    first = {case: norms.where(case=case).levels("trial")[0] for case in _cases(norms)}

    def drawn(row: Row) -> bool:
        return first.get(row.get("case", "")) == row.get("trial")

    rows = norms.where(drawn) + roads.predicted.where(drawn, quantity="bound")
    named = ({**row, "name": _name(row["case"])} for row in rows)
    return Rows([*roads.predicted.where(quantity="picture"), *named])


def compare(roads: Roads) -> list[Row]:
    """Limit of the largest norm times the root of R, beside the deepest network."""
    rows: list[Row] = []
    for row in roads.predicted.where(quantity="limit"):
        labels = {"case": row["case"], "trial": row["trial"]}
        found = roads.measured.where(quantity="max_norm", **labels)
        deepest = max(found.column("units"))
        norm = found.only(units=deepest)
        rows.append(
            {
                "label": f"max ‖W‖ √R, points {row['case']}, trial {row['trial']}, "
                f"{deepest} units",
                "predicted": row["value"],
                "measured": norm["value"] * math.sqrt(deepest),
                "error": norm["error"] * math.sqrt(deepest),
            }
        )
    return rows


def _cases(rows: Rows) -> list[str]:
    return list(dict.fromkeys(rows.column("case")))


def _name(case: str) -> str:
    if case in NAMES:
        return NAMES[case]
    m, d = case.split(",")
    return f"{m} samples, width {d}"
