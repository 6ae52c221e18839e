"""What the figures show, and limits beside what was found."""

from theodolite.core import Roads, Row, Rows, points

PROPERTIES = ("nc1", "nc2", "nc3", "nc4")
RUN = ("classes", "loss", "decay", "start")


def collapse(roads: Roads) -> Rows:
    """Return the four numbers beside norms, condition by condition, and untrained."""
    rows = roads.measured.where(labels="given", loss="square")
    found: list[Row] = []
    for row in points(rows.where(quantity="norm", reading="product"), RUN, log=True):
        labels = {key: row[key] for key in RUN}
        for name in PROPERTIES:
            kept = rows.where(quantity=name, stage="end", **labels)
            found += [
                {**point, "norm": 10 ** row["value"]} for point in points(kept, RUN)
            ]
    before = roads.measured.where(stage="untrained")
    return Rows(found) + Rows.joined(
        points(before.where(quantity=name), ("classes", "stage")) for name in PROPERTIES
    )


def curves(roads: Roads) -> Rows:
    """Return errors on new samples over time, by loss and labels, without decay."""
    rows = roads.measured.where(
        lambda row: row["epoch"] > 0, quantity="test_error", decay=0.0
    )
    most = rows.where(classes=max(rows.levels("classes"), default=0))
    return points(most, ("labels", "loss", "start", "epoch"))


def compare(roads: Roads) -> list[Row]:
    """Set heads as they are beside where they would be with orthogonal means."""
    rows: list[Row] = []
    last = max(roads.measured.levels("decay"))
    found = roads.measured.where(
        quantity="raw_duality", stage="end", loss="square", decay=last
    )
    for row in points(found, ("classes",)):
        rows.append(
            {
                "label": f"head as it is to centred means, {row['classes']} classes",
                "predicted": roads.predicted.value(
                    quantity="raw_duality", classes=row["classes"]
                ),
                "measured": row["value"],
                "error": row["error"],
            }
        )
    return rows
