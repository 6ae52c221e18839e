"""What the figure shows, and forces by formula beside those by autodiff."""

from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row

SHOWN = ("norm", "deep_opposite", "middle_opposite", "shallow_opposite")


def table(both: PredictedAndMeasured) -> Rows:
    """Return the force on the norm against the ratio of the gradients, one pair."""
    pairs = {(row["shallow"], row["deep"]) for row in both.measured if row["shallow"]}
    m, p = min(pairs, key=lambda pair: (-pair[1] / pair[0], pair))
    here = both.measured.where(shallow=m, deep=p)
    found = here.where(lambda row: row["kind"] in SHOWN, quantity="bracket")
    return found + both.predicted.where(quantity="envelope", shallow=m, deep=p)


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Forces of the first trial of every pair of degrees."""
    rows: list[Row] = []
    for quantity, kind in (
        ("unskipped_force", "unskipped"),
        ("skipped_force", "dominant"),
        ("norm_force", "norm"),
    ):
        for row in both.measured.where(quantity=quantity, kind=kind, trial=0):
            m, p = row["shallow"], row["deep"]
            labels = {"kind": kind, "trial": 0, "shallow": m, "deep": p}
            theory = both.predicted.value(quantity=quantity, **labels)
            rows.append(
                compared_row(
                    f"{quantity.replace('_', ' ')}, degrees {m} and {p}", theory, row
                )
            )
    return rows
