"""Tests of scales along training, and of sizes at the start."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from theodolite.core import (
    Judgement,
    Number,
    PredictedAndMeasured,
    Row,
    Rows,
    Select,
    Test,
    above,
    all_of,
    each,
    inside,
    mean,
    measured,
    near,
    ordered,
    undecided,
)

SKIPPED = "layers with a skip"
Asides = Callable[[PredictedAndMeasured], dict[str, Number]]
WIDE = "of widths and samples in the hundreds, each a few parts in a hundred"


def scale(norm: str, **labels: int) -> Select:
    """Select the scales' magnitudes of a kind of network."""
    return measured("scale", None, norm=norm, **labels)


def skipped(norm: str, **labels: int) -> Select:
    """Select those of layers with a skip, which is all but the first."""
    rows = measured("scale", lambda row: row["layer"] > 1, norm=norm, **labels)
    return rows.called(f"scale of {SKIPPED}")


def _ends(both: PredictedAndMeasured, norm: str) -> list[int]:
    return scale(norm)(both).levels("stage")


def grown(rows: Select, norm: str, since: int = 0) -> Test:
    """Judge whether magnitudes are greater at the end than at an earlier stage.

    Args:
        rows: Whose.
        norm: Kind of the networks.
        since: Place of the earlier stage in the list of all.
    """

    def test(both: PredictedAndMeasured) -> Judgement:
        stages = _ends(both, norm)
        if len(stages) < 2:
            return undecided("fewer than two stages were read")
        first, last = stages[since], stages[-1]
        return ordered(rows.at(stage=first), rows.at(stage=last))(both)

    return test


def every_layer_grown(norm: str, since: int) -> Test:
    """Judge whether the scale of every layer with a skip is greater at the end."""
    return each(
        "layer",
        skipped(norm),
        lambda layer: grown(scale(norm, layer=layer), norm, since),
        name="growth by layer",
    )


def higher_lines(norm: str) -> Test:
    """Judge whether each stage lies above the one before, on average over layers."""

    def test(both: PredictedAndMeasured) -> Judgement:
        stages = _ends(both, norm)
        if len(stages) < 2:
            return undecided("fewer than two stages were read")
        rows = skipped(norm)
        pieces = [
            ordered(
                rows.at(stage=a), rows.at(stage=b), name=f"rise from stage {a} to {b}"
            )(both)
            for a, b in pairwise(stages)
        ]
        return all_of(pieces, "every stage above the one before")

    return test


def _apart(rows: Rows) -> Rows:
    """Return how much further the first layer is from the rest than any other is.

    The rest of a layer is the mean of all others.
    """
    found: dict[tuple, dict[int, Row]] = {}
    for row in rows.where(quantity="scale"):
        key = row["norm"], row["trial"], row["stage"]
        found.setdefault(key, {})[row["layer"]] = row
    return Rows(_excess(by_layer) for by_layer in found.values() if len(by_layer) > 2)


def _excess(by_layer: dict[int, Row]) -> Row:
    total, count = sum(row["value"] for row in by_layer.values()), len(by_layer)
    gaps = {
        layer: abs(row["value"] - (total - row["value"]) / (count - 1))
        for layer, row in by_layer.items()
    }
    return {
        **by_layer[1],
        "quantity": "excess",
        "value": gaps.pop(1) - max(gaps.values()),
        "error": 4 * max(row["error"] for row in by_layer.values()),
    }


def first_differs(norm: str) -> Test:
    """Judge whether the first layer's scale ends further from the rest than any."""

    def test(both: PredictedAndMeasured) -> Judgement:
        stages = _ends(both, norm)
        if not stages:
            return undecided("no network was read")
        rows = measured("excess", norm=norm, stage=stages[-1]).out_of(_apart)
        told = "distance of the first layer, less the greatest of another"
        return inside(mean(rows.called(told)), above(0))(both)

    return test


def ends(norm: str) -> Asides:
    """Make asides: the scale of every layer at the end of training."""

    def told(both: PredictedAndMeasured) -> dict[str, Number]:
        stages = _ends(both, norm)
        rows = scale(norm)(both)
        return {
            f"scale at the end, layer {layer}": _number(
                rows.where(layer=layer, stage=stages[-1]).values()
            )
            for layer in rows.levels("layer")
        }

    return told


def deviations(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return the deviation of every layer at the start."""
    rows = both.measured.where(quantity="deviation")
    return {
        f"deviation, layer {layer}": _number(rows.where(layer=layer).values())
        for layer in rows.levels("layer")
    }


def _number(values: np.ndarray) -> Number:
    """Return a mean over networks with its standard error."""
    if len(values) < 2:
        return Number(float(values.mean()))
    return Number(float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5)


def _of_theory(both: PredictedAndMeasured) -> PredictedAndMeasured:
    """Put increments in units of those of the wide limit."""
    theory = {
        row["layer"]: row["value"] for row in both.predicted.where(quantity="increment")
    }
    rows = [
        {**row, "quantity": "share", "value": row["value"] / theory[row["layer"]]}
        for row in both.measured.where(quantity="increment")
    ]
    return PredictedAndMeasured(both.predicted, Rows(rows))


def wide_increments(both: PredictedAndMeasured) -> Judgement:
    """Judge whether increments are those of the wide limit."""
    margin = near(1, 0.1, source="ours", why=WIDE)
    return each(
        "layer",
        measured("share"),
        lambda layer: inside(mean(measured("share", layer=layer)), margin),
        name="increment over that of the wide limit",
    )(_of_theory(both))
