"""What figures 1 and 2 show, and shares of figure 1 beside theory."""

from itertools import pairwise

from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    by_network,
    estimate,
    group_means,
)

KINDS = ("chain", "res", "average")


def linear_table(both: PredictedAndMeasured) -> Rows:
    """Return shares with and without the identity, and their limits."""
    found = group_means(
        both.measured.where(quantity="matrix_share"), ("shift", "share")
    )
    law = both.predicted.where(quantity="matrix_share")
    return found + [{**row, "quantity": "limit"} for row in law]


def network_table(both: PredictedAndMeasured) -> Rows:
    """Return shares of both spectra and losses by step, means over trials."""
    rows = both.measured.where(part="figure")
    shares = group_means(rows.where(quantity="share"), ("metric", "kind", "share"))
    losses = group_means(rows.where(quantity="loss"), ("kind", "step"), log=True)
    return shares + losses


def start_table(both: PredictedAndMeasured) -> Rows:
    """Return what each addition changes from each start, paired over trials.

    Shifts are decimal logarithms of the ratio of means, speeds the fall of the mean
    logarithm of the loss.
    """
    rows = both.measured.where(part="start")
    starts = sorted({(row["init"], row["gain"]) for row in rows})
    steps = max(rows.levels("over"), default=0)
    found: list[Row] = []
    for place, (init, gain) in enumerate(starts):
        here = rows.where(init=init, gain=gain)
        readings = {
            "blocks": (here.where(quantity="mean", metric="blocks"), True, 1),
            "composite": (here.where(quantity="mean", metric="composite"), True, 1),
            "speed": (here.where(quantity="log_loss", over=steps), False, -1),
        }
        for name, (read, log, sign) in readings.items():
            for low, high in pairwise(KINDS):
                pair = [by_network(read.where(kind=k), log=log) for k in (high, low)]
                values = list(pair[0].minus(pair[1]).values.values())
                told = estimate(values) if len(values) > 1 else None
                found.append(
                    {
                        "quantity": name,
                        "addition": high,
                        "start": f"{init} × {gain:g}" if gain != 1 else init,
                        "place": place,
                        "value": sign * told.mean if told else None,
                        "spread": told.stderr if told else 0.0,
                        "error": told.stderr if told else None,
                    }
                )
    return Rows(found)


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Set shares and ends of figure 1 beside their limits."""
    rows: list[Row] = []
    for quantity in ("matrix_share", "low_end", "high_end"):
        by = ("shift", "share") if quantity == "matrix_share" else ("shift",)
        law = both.predicted.where(quantity=quantity)
        for row in group_means(both.measured.where(quantity=quantity), by):
            share = f", tenth {row['share']}" if "share" in row else ""
            what = "I + A" if row["shift"] else "A"
            rows.append(
                {
                    "label": f"{quantity.replace('_', ' ')} of {what}{share}",
                    "predicted": law.value(**{key: row[key] for key in by}),
                    "measured": row["value"],
                    "error": row["error"],
                }
            )
    return rows
