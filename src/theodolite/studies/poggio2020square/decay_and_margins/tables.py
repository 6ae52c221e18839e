"""What the figures show, and what is printed beside predictions."""

from theodolite.core import Roads, Row, Rows, measured, points, slope

RUN = ("decay", "start", "noise")


def norms(roads: Roads) -> Rows:
    """Return margins and errors beside norms, run by run, and spreads of margins."""
    rows = roads.measured.where(noise=0.0)
    spread = points(
        rows.where(quantity="margin_spread"), ("stage", "decay", "start", "noise")
    )
    return Rows(_beside(rows)) + _floored(spread)


def _beside(rows: Rows) -> list[Row]:
    """Return means over trials of norms, each with a margin and an error."""
    found: list[Row] = []
    ends = rows.where(stage="end")
    for row in points(ends.where(quantity="norm", reading="product"), RUN, log=True):
        labels = {key: row[key] for key in RUN}
        for name, reading in (("mean_margin", "product"), ("test_error", None)):
            kept = ends.where(quantity=name, reading=reading, **labels)
            (other,) = points(kept, RUN)
            found.append({**other, "norm": 10 ** row["value"], "beside": name})
        at = {"norm": 10 ** row["value"], "value": 10 ** -row["value"], "error": 0.0}
        found.append({"quantity": "inverse", **at})
    return sorted(found, key=lambda row: row["norm"])


def starts(roads: Roads) -> Rows:
    """Return norms at the end by decay and start, and thresholds by length."""
    ends = roads.measured.where(
        quantity="norm", reading="product", stage="end", noise=0.0
    )
    rows = roads.measured.where(quantity="threshold", reading="product")
    # Where some trial's lies on the edge of what was tried, the mean is not known.
    edge = {(row["level"], row["epoch"]) for row in rows if row["edge"]}
    found = points(rows, ("level", "epoch")).where(
        lambda row: (row["level"], row["epoch"]) not in edge
    )
    return _floored(points(ends, RUN, log=True)) + found + _law(found)


def _law(thresholds: Rows) -> list[Row]:
    """Return the inverse of the length through the first threshold of a half."""
    half = thresholds.where(level=0.5)
    return [
        {
            "quantity": "law",
            "epoch": row["epoch"],
            "value": half[0]["value"] * half[0]["epoch"] / row["epoch"],
            "error": 0.0,
        }
        for row in half
    ]


def noise(roads: Roads) -> Rows:
    """Return norms of the last layer and errors by label noise and start."""
    quiet = roads.measured.where(decay=0.0, stage="end")
    return points(quiet.where(quantity="norm", reading="last"), RUN, log=True) + points(
        quiet.where(quantity="test_error"), RUN
    )


def compare(roads: Roads) -> list[Row]:
    """Set the law of the threshold and of margins beside what was found."""
    read = slope(measured("threshold", level=0.5, reading="product"), "epoch")(roads)
    rows: list[Row] = [
        {
            "label": "exponent of the decay that halves dependence, in the epochs",
            "predicted": roads.predicted.value(quantity="threshold_exponent"),
            "measured": read.value,
            "error": read.error,
        }
    ]
    ends = roads.measured.where(quantity="norm_times_margin")
    for row in points(ends, ("decay",)):
        rows.append(
            {
                "label": f"norm times mean margin, decay {row['decay']:g}",
                "predicted": roads.predicted.value(quantity="norm_times_margin"),
                "measured": row["value"],
                "error": row["error"],
            }
        )
    return rows


def _floored(rows: Rows) -> Rows:
    """Give no decay a place on a logarithmic axis, a third below the least."""
    least = min(d for d in rows.levels("decay") if d > 0)
    return Rows({**row, "shown": row["decay"] or least / 3} for row in rows)
