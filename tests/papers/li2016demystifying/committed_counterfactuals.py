"""Committed rows of figures 7 and 8 as if nature were otherwise."""

from functools import cache

from tests.studies.counterfactuals import claim_of
from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows
from theodolite.studies import find


@cache
def committed(name):
    """Return both sides of a study's committed run."""
    study = find(name).study
    return study.committed.run.predicted_and_measured(
        study.predict(study.presets["smoke"])
    )


def outcome(name, claim, both):
    """Return what rows say of a claim."""
    return str(claim_of(find(name).study, claim).rule(both).outcome)


def changed(both, changes):
    """Return the sides with columns of measured rows changed, one after the other."""
    rows = both.measured
    for (quantity, column), labels, change in changes:
        found = Rows(
            {**row, column: change(row)}
            if row["quantity"] == quantity
            and all(row.get(key) == value for key, value in labels.items())
            else row
            for row in rows
        )
        assert found != rows, f"no row of {quantity} was changed"
        rows = found
    return PredictedAndMeasured(both.predicted, rows)


def edged(both):
    """Return the sides with all best rates on the edge of what was tried."""
    return PredictedAndMeasured(
        both.predicted,
        Rows(
            {**row, "edge": True, "own_edge": True}
            if row["quantity"] in ("log10_rate", "excess", "final_loss")
            else row
            for row in both.measured
        ),
    )


def times(factor):
    return lambda row: row["value"] * factor


def const(value):
    """A constant with a hair of spread, as no measurement is without."""
    return lambda row: value * (1 + 1e-3 * row.get("trial", 0))


def power(scale, exponent):
    return lambda row: const(scale * row["depth"] ** exponent)(row)


def moved(decades):
    return lambda row: row["own_rate"] + decades


def legend(drawing, both):
    """Draw, and return the names in the legend."""
    with figures.house_style():
        figure = drawing.draw(drawing.table(both))
    assert all(panel.get_xlabel() for panel in figure.axes)
    (shared,) = figure.legends
    names = [text.get_text() for text in shared.get_texts()]
    assert len(names) == len(set(names))
    return names
