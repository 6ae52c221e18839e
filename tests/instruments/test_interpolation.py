"""Separability, the time of zero training error, and the terminal phase."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core import ConfigError, MeasurementError
from theodolite.instruments import InterpolationMeter, TerminalPhase, interpolation


def test_phases_of_a_training_that_relapses():
    margins = {
        0: [-2.0, 1.0],
        10: [-0.5, 1.0],
        30: [0.5, 1.0],
        35: [0.0, 2.0],
        40: [0.1, 2.0],
        60: [0.2, 2.0],
    }
    phase = interpolation(margins)
    assert phase.average_separable.tolist() == [False, True, True, True, True, True]
    assert phase.separable.tolist() == [False, False, True, False, True, True]
    assert (phase.average_from, phase.average_from_error) == (10, 10)
    assert (phase.zero_error_from, phase.zero_error_from_error) == (30, 20)
    assert (phase.settled_from, phase.settled_from_error) == (40, 5)
    assert phase.relapses == 1
    assert phase.terminal_share == pytest.approx(3 / 4)
    np.testing.assert_allclose(phase.least_margin, [-2, -0.5, 0.5, 0, 0.1, 0.2])
    loose = interpolation(margins, tolerance=0.5)
    assert (loose.zero_error_from, loose.zero_error_from_error) == (0, 0)


def test_what_has_not_come_is_infinite():
    phase = interpolation({0: [-1.0], 1: [-2.0]})
    for name in ("average_from", "zero_error_from", "settled_from"):
        assert getattr(phase, name) == getattr(phase, f"{name}_error") == math.inf
    assert math.isnan(phase.terminal_share)
    # A relapse at the last look: the error vanished, but not for good.
    last = interpolation({0: [1.0], 1: [-2.0]})
    assert (last.zero_error_from, last.settled_from) == (0, math.inf)


def test_errors_alone():
    phase = interpolation(errors={0: 0.5, 5: 0.0, 10: 0.0})
    assert (phase.zero_error_from, phase.settled_from) == (5, 5)
    assert math.isnan(phase.average_from)
    assert np.isnan(phase.least_margin).all()


@settings(max_examples=20)
@given(st.data())
def test_no_order_or_merge_changes_anything(data):
    rng = np.random.default_rng(0)
    table = {step: np.round(rng.normal(size=12) + step / 3, 6) for step in range(6)}
    whole = interpolation(table)
    parts = [(step, half) for step in table for half in np.split(table[step], 2)]
    order = data.draw(st.permutations(parts))
    meters = [InterpolationMeter() for _ in range(2)]
    for place, (step, half) in enumerate(order):
        meters[place % 2].update(step, torch.tensor(half))
    meters[0].merge(meters[1])
    found = meters[0].compute()
    for name in ("error_rate", "least_margin", "separable", "settled_from"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    np.testing.assert_allclose(found.mean_margin, whole.mean_margin, rtol=1e-12)


def test_reset_and_saving(tmp_path):
    meter = InterpolationMeter(norm_mode="batch")
    meter.update(3, [1.0])
    phase = meter.compute()
    phase.save(tmp_path / "phase.npz")
    assert TerminalPhase.load(tmp_path / "phase.npz").rows() == phase.rows()
    assert len(str(phase).splitlines()) <= 24
    meter.reset()
    with pytest.raises(MeasurementError, match="no margins came"):
        meter.compute()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda m: m.update(0, [math.nan]), "NaN"),
        (lambda m: m.update(0, []), "no sample"),
        (lambda m: m.update("a", [1.0]), "step"),
        (lambda m: m.update([0, 1], [1.0]), "step"),
        (lambda m: m.update(0, "words"), "margins"),
        (lambda m: m.update_errors(0, 1.5), "error rate of 1.5"),
    ],
)
def test_misuse_is_one_sentence(act, words):
    with pytest.raises(MeasurementError, match=words) as said:
        act(InterpolationMeter())
    assert "\n" not in str(said.value)


def test_a_tolerance_is_a_share():
    with pytest.raises(ConfigError, match="no share"):
        interpolation({0: [1.0]}, tolerance=1.0)
