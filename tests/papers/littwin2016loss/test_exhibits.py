"""What the studies of the paper hand to its explorer."""

import pytest

from theodolite.core import PredictedAndMeasured, Rows
from theodolite.studies import find


def exhibit_of(study, rows):
    (exhibit,) = find(f"littwin2016loss/{study}").study.exhibits
    assert exhibit.name == "path_ensembles"
    return exhibit.table(PredictedAndMeasured(Rows(), Rows(rows)))


def along_training(trial, depth, **labels):
    """A reading of a fully connected network with six branches."""
    where = {"family": "layerwise", "task": "digits", "norm": "batch", "depth": 7,
             "trial": trial, "horizon": "short", "readout": 1.0, "rate": 0.01,
             "step": 40, **labels}  # fmt: skip
    numbers = {"output_depth": depth, "output_spread": 1.2, "output_beta": 0.5}
    return [
        {**where, "quantity": name, "value": value, "error": 0.01}
        for name, value in {**numbers, "gradient_depth": 0.5, "scale": 1.0}.items()
    ]


def test_ensembles_along_training_are_means_over_networks():
    shown = exhibit_of(
        "depth_along_training", [*along_training(0, 0.3), *along_training(1, 0.5)]
    )
    network = "digits, batch norm, depth 7, readout × 1, rate 0.01"
    labels = {"network": network, "part": "output", "blocks": 6, "step": 40}
    (depth,) = shown.where(quantity="effective_depth", **labels)
    assert depth["value"] == pytest.approx(2.4)
    assert depth["error"] == pytest.approx(0.6)
    assert shown.value(quantity="beta", **labels) == 0.5
    assert shown.value(quantity="spread", **labels) == 1.2
    assert shown.value(part="gradient") == 3.0
    assert len(shown) == 4, "nothing else is handed over"


def test_networks_that_ended_early_are_left_out():
    rows = [*along_training(0, 0.3), *along_training(1, 0.5)]
    fate = {"quantity": "finished", "value": 0.0, "error": 0.0}
    rows.append({**rows[-1], **fate})
    shown = exhibit_of("depth_along_training", rows)
    depth = shown.value(quantity="effective_depth", part="output")
    assert depth == pytest.approx(1.8)


def test_measured_ensembles_are_shares_by_branches_taken():
    where = {"scale": "he", "width": 8, "depth": 3}
    shares = ((0.2, 0.5, 0.3), (0.4, 0.5, 0.1))
    rows = [
        {**where, "trial": trial, "part": "output", "quantity": "share",
         "length": r, "value": value, "error": 1e-15}
        for trial, values in enumerate(shares)
        for r, value in enumerate(values, start=1)
    ]  # fmt: skip
    rows += [
        {**where, "trial": 0, "part": part, "quantity": name, "value": value,
         "error": 0.1}
        for part in ("output", "gradient")
        for name, value in {"beta": 0.7, "length": 2.5, "distance": 0.1}.items()
    ]  # fmt: skip
    shown = exhibit_of("measured_ensemble", rows)
    network = "random, width 8, depth 3, weights √(2/n)"
    assert set(shown.column("network")) == {network}
    assert set(shown.column("blocks")) == {2}
    mine = shown.where(quantity="share", part="output")
    assert list(mine.column("length")) == [0, 1, 2]
    assert mine.values() == pytest.approx([0.3, 0.5, 0.2])
    assert mine.values("error") == pytest.approx([0.1, 0.0, 0.1])
    assert list(shown.where(quantity="beta").values()) == [0.7, 0.7]
    assert shown.value(quantity="effective_depth", part="gradient") == 1.5
    assert len(shown) == 6
