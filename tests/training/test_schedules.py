import pickle

import numpy as np
import pytest

from theodolite.core import ConfigError
from theodolite.training.probes.schedules import (
    AtLosses,
    AtSteps,
    Every,
    LogSpaced,
    Schedule,
)


def due(when, stop):
    return [step for step in range(stop) if when.due(step)]


def test_every():
    assert due(Every(1), 4) == [0, 1, 2, 3]
    assert due(Every(7), 30) == [0, 7, 14, 21, 28]


def test_at_steps_takes_numpy_integers_in_any_order():
    assert due(AtSteps([9, 2, 2]), 20) == [2, 9]
    assert due(AtSteps(np.arange(0, 20, 5)), 20) == [0, 5, 10, 15]
    assert due(AtSteps([]), 20) == []


@pytest.mark.parametrize("per_decade", [1, 2, 3, 5, 10, 25])
def test_log_spaced_is_the_rounded_powers(per_decade):
    top = 10_000
    powers = {round(10 ** (i / per_decade)) for i in range(4 * per_decade + 1)}
    assert due(LogSpaced(per_decade), top + 1) == [0, *sorted(powers)]


def test_levels_come_largest_first_and_once():
    assert AtLosses([0.1, 1, 0.5, 0.1]).levels == (1.0, 0.5, 0.1)
    assert due(AtLosses([0.1]), 50) == []
    assert Every(3).levels == ()


@pytest.mark.parametrize(
    "when", [Every(3), AtSteps([1, 4]), LogSpaced(), AtLosses([1])]
)
def test_schedules_are_values(when):
    again = pickle.loads(pickle.dumps(when))
    assert isinstance(when, Schedule)
    assert again == when
    assert hash(again) == hash(when)
    assert due(again, 40) == due(when, 40)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Every(0), "n is 0"),
        (lambda: Every(2.0), "n is 2.0"),
        (lambda: Every(True), "n is True"),
        (lambda: AtSteps([3, -1]), "steps .3, -1.: pass whole numbers"),
        (lambda: AtSteps([1.5]), "steps is"),
        (lambda: AtSteps(4), "steps is 4"),
        (lambda: LogSpaced(0), "n is 0"),
        (lambda: AtLosses([]), "pass at least one"),
        (lambda: AtLosses([float("nan")]), "finite"),
        (lambda: AtLosses(0.1), "losses is 0.1"),
        (lambda: AtLosses(["low"]), "losses is"),
    ],
)
def test_what_means_nothing_is_refused(make, says):
    with pytest.raises(ConfigError, match=says):
        make()


def test_the_same_steps_in_any_order_are_one_schedule():
    """Run folders know a schedule by its text."""
    one, other = AtSteps([64, 0, 8]), AtSteps([8, 64, 0, 8])
    assert one == other
    assert repr(one) == repr(other)
