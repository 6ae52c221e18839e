"""What the figure shows, and what is printed beside predictions."""

from theodolite.core import Roads, Row, Rows


def table(roads: Roads) -> Rows:
    """Return norms that are reached over the least one, by start, on both roads."""
    rows: list[Row] = []
    for road, found in (("flow", roads.predicted), ("descent", roads.measured)):
        for row in found.where(quantity="end_norm"):
            least = roads.predicted.value(quantity="least_norm", trial=row["trial"])
            value, error = row["value"] / least, row["error"] / least
            rows.append({**row, "road": road, "value": value, "error": error})
    return Rows(rows)


def compare(roads: Roads) -> list[Row]:
    """Ends of flows beside ends of descent, and residuals of the three points."""
    rows: list[Row] = []
    for quantity, by in (
        ("end_norm", ("trial", "start")),
        ("residual", ("decay", "sample")),
        ("margin", ("sample",)),
    ):
        for row in roads.measured.where(quantity=quantity):
            if row.get("trial", 0):
                continue
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
