"""What the figures show, and condition numbers beside Eq 9."""

from theodolite.core import Roads, Row, Rows
from theodolite.studies.li2016demystifying.shared.problems import SETTINGS


def picture(roads: Roads) -> Rows:
    """Return the entries of both roads, and the largest magnitude of all."""
    entries = Rows(
        {**row, "road": road}
        for road, rows in (
            ("closed form", roads.predicted),
            ("measured", roads.measured),
        )
        for row in rows.where(quantity="entry")
    )
    limit = max(abs(row["value"]) for row in entries)
    return Rows([*entries, {"quantity": "limit", "value": limit}])


def unit(roads: Roads) -> Rows:
    """Return the boxes of a unit of a 2-shortcut network, from left to right."""
    boxes = ("pre", "W_1", "mid", "W_2", "post")
    return Rows(
        {
            "quantity": "box",
            "label": f"${label}$" if place % 2 else f"$\\sigma_{{{label}}}$",
            "position": "" if place % 2 else label,
            "value": 1.2 * (place + 1),
        }
        for place, label in enumerate(boxes)
    )


def compare(roads: Roads) -> list[Row]:
    """Condition number of Eq 9 beside the measured one, deepest network."""
    rows: list[Row] = []
    closed = roads.predicted.where(quantity="condition")
    measured = roads.measured.where(quantity="condition")
    deepest = max(measured.levels("units"))
    for setting in SETTINGS:
        for trial in closed.levels("trial")[:3]:
            found = measured.only(setting=setting, trial=trial, units=deepest)
            rows.append(
                {
                    "label": f"cond(H), n = 2, {setting}, {deepest} units, "
                    f"dataset {trial}",
                    "predicted": closed.value(setting=setting, trial=trial),
                    "measured": found["value"],
                    "error": found["error"],
                }
            )
    return rows
