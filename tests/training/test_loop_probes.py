"""Probes of the plain loop: they see what there is, change nothing and end alone."""

import math

import numpy as np
import pytest
import torch

from tests.training.probe_cases import (
    assert_same_state,
    broken,
    by_hand,
    data,
    moody,
    network,
    probes,
    state,
    vandal,
    weight_norm,
)
from theodolite.core import ConfigError
from theodolite.instruments import Problem
from theodolite.training.loop.loop import train
from theodolite.training.optimizers.descent import Descent
from theodolite.training.probes.probe import Probe, ProbeRunner, ProbeWarning, Snapshot
from theodolite.training.probes.schedules import AtLosses, Every


def test_probes_change_nothing():
    runs = []
    for chosen in ((), [Probe("vandal", vandal, Every(2))]):
        model = moody()
        torch.manual_seed(7)
        run = train(
            model, data(), optimizer=Descent(lr=0.1, momentum=0.9), steps=6,
            probes=chosen,
        )  # fmt: skip
        runs.append((state(model), run.loss.tolist()))
    assert_same_state(runs[0][0], runs[1][0])
    assert runs[0][1] == runs[1][1]


def test_probes_see_the_weights_before_the_update():
    x, y = data()
    model, norms = network(), []
    run = train(
        model, (x, y), optimizer=Descent(lr=0.1), steps=6, probes=probes((0.9, 0.8))
    )
    theirs = network()
    for _ in range(7):
        norms.append(
            math.sqrt(
                sum(float(p.detach().square().sum()) for p in theirs.parameters())
            )
        )
        by_hand(theirs, [(x, y)] * 2, [0.1])
    rows = run.probe_rows.where(quantity="weights")
    assert rows.column("step") == [0, 2, 4, 6]
    np.testing.assert_allclose(rows.values(), norms[::2], rtol=1e-12)
    np.testing.assert_array_equal(rows.values("loss"), run.loss[::2])
    assert run.probe_rows.where(quantity="gradient/all").column("step") == [0, 3, 6]
    assert run.probe_rows.levels("error") == []


def test_levels_are_measured_at_their_first_crossing():
    plain = train(network(), data(), optimizer=Descent(lr=0.3), steps=8).loss
    between = [plain[3] + (plain[4] - plain[3]) * part for part in (0.3, 0.6)]
    levels = {2 * plain[0]: 0, plain[2]: 2, between[0]: 4, between[1]: 4}
    run = train(
        network(), data(), optimizer=Descent(lr=0.3), steps=8,
        probes=[Probe("low", weight_norm, AtLosses([*levels, 1e-9]))],
    )  # fmt: skip
    assert (np.diff(plain) < 0).all(), "wanted a loss that falls"
    rows = run.probe_rows
    assert len(rows) == 4
    crossed = dict(zip(rows.column("level"), rows.column("step"), strict=True))
    assert crossed == {float(level): step for level, step in levels.items()}
    assert rows.values("loss").tolist() == plain[rows.column("step")].tolist()


def test_a_probe_that_raises_is_reported_once_and_retired():
    chosen = [Probe("broken", broken, Every(2)), Probe("fine", weight_norm, Every(2))]
    with pytest.warns(ProbeWarning, match="'broken' raised ZeroDivision") as caught:
        run = train(
            network(), data(), optimizer=Descent(lr=0.1), steps=6, probes=chosen
        )
    assert len(caught) == 1
    assert run.retired == {"broken": "ZeroDivisionError: no number at step 0"}
    assert run.probe_rows.column("step") == [0, 2, 4, 6]
    assert not run.diverged


def test_a_warning_made_an_error_ends_no_training(caplog):
    run = train(  # pytest makes warnings errors
        network(), data(), optimizer=Descent(lr=0.1), steps=3,
        probes=[Probe("broken", broken), Probe("fine", weight_norm)],
    )  # fmt: skip
    assert len(run.probe_rows) == 4
    assert [r.getMessage()[:14] for r in caplog.records] == ["probe 'broken'"]


@pytest.mark.parametrize(
    ("measured", "quantities"),
    [
        (2, ["p"]),
        (np.float32(2), ["p"]),
        (np.array(2.0), ["p"]),
        (torch.tensor(2.0, requires_grad=True), ["p"]),
        ({"a": 2, "b": torch.tensor(2.0)}, ["p/a", "p/b"]),
        ([{"quantity": "a", "value": 2.0, "rank": 0}], ["p/a"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_probe_may_return(measured, quantities):
    runner = ProbeRunner([Probe("p", lambda at: measured)], {"seed": 5})
    rows = runner.visit(Snapshot(step=0, loss=1.0, problem=lambda: Problem(network())))
    assert not runner.retired
    assert [row["quantity"] for row in rows] == quantities
    assert {row["value"] for row in rows} == {2.0}
    assert {row["seed"] for row in rows} == {5}


def test_labels_of_the_run_win_over_those_of_a_reading():
    inner = train(network(), data(), optimizer=Descent(lr=0.1), steps=0, seed=9)
    runner = ProbeRunner([Probe("inner", lambda at: inner)], {"seed": 5})
    rows = runner.visit(Snapshot(step=0, loss=1.0, problem=lambda: Problem(network())))
    assert {row["seed"] for row in rows} == {5}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Probe("", weight_norm),
        lambda: Probe("a", 3),
        lambda: Probe("a", weight_norm, 10),
        lambda: Probe("a", weight_norm, Every),
    ],
)
def test_probes_that_mean_nothing_are_refused(make):
    with pytest.raises(ConfigError, match=r"give it a name|pass "):
        make()
