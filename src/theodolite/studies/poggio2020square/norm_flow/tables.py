"""What the figures show, and what is printed beside predictions."""

from theodolite.core import Roads, Row, Rows


def unit_table(roads: Roads) -> Rows:
    """Return the norm of one unit and where it would rest, over time."""
    kept = ("unit_norm", "unit_rest")
    return roads.predicted.where(lambda row: row["quantity"] in kept)


def transient_table(roads: Roads) -> Rows:
    """Return times to half of the rest on both roads, and paths of growth."""
    theory = roads.predicted.where(lambda r: r["quantity"] in ("transient", "growth"))
    real = roads.measured.where(quantity="transient")
    return Rows(
        [
            *({**row, "road": "flow"} for row in theory),
            *({**row, "road": "descent"} for row in real),
        ]
    )


def kink_table(roads: Roads) -> Rows:
    """Return residuals of Eq 8 at the ends of descent, in their order."""
    rows: list[Row] = []
    for name in ("first_residual", "clarke_residual", "last_residual"):
        found = sorted(
            roads.measured.where(quantity=name), key=lambda row: row["value"]
        )
        rows += [{**row, "rank": k} for k, row in enumerate(found, start=1)]
    return Rows(rows)


def compare(roads: Roads) -> list[Row]:
    """Norms, times and rests of the flow beside those of descent."""
    rows: list[Row] = []
    for quantity, by in (
        ("held_norm", ("time",)),
        ("layered_norm", ("layers", "time")),
        ("peak", ("case",)),
        ("end", ("case",)),
        ("equilibrium", ("case",)),
        ("transient", ("layers", "start")),
    ):
        for row in roads.measured.where(quantity=quantity):
            labels = {key: row[key] for key in by}
            told = ", ".join(f"{key} {value}" for key, value in labels.items())
            rows.append(
                {
                    "label": f"{quantity.replace('_', ' ')}, {told}",
                    "predicted": roads.predicted.value(quantity=quantity, **labels),
                    "measured": row["value"],
                    "error": row["error"],
                }
            )
    return rows
