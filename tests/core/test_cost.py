import dataclasses
import json
import time

import pytest

from theodolite.core import Cost, Stopwatch


def test_costs_add_up():
    total = Cost(wall_s=1.0, cpu_s=2.0, passes=3) + Cost(wall_s=0.5, cpu_s=4.0)
    assert total == Cost(wall_s=1.5, cpu_s=6.0, passes=3)
    parts = [Cost(passes=i) for i in range(4)]
    assert sum(parts, Cost()).passes == 6


def test_a_cost_is_frozen_and_json():
    cost = Cost(wall_s=1.0, passes=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        cost.passes = 3
    assert json.loads(json.dumps(cost.to_dict())) == {
        "wall_s": 1.0,
        "cpu_s": 0.0,
        "passes": 2,
    }


def test_waiting_costs_wall_time_only(monkeypatch):
    """By clocks that are set by hand: a busy machine would add to real ones."""
    wall, processor = [3.0], [7.0]
    monkeypatch.setattr(time, "perf_counter", lambda: wall[0])
    monkeypatch.setattr(time, "process_time", lambda: processor[0])
    watch = Stopwatch()
    wall[0] += 2.0
    assert watch.read() == Cost(wall_s=2.0)
    processor[0] += 1.0
    assert watch.read(passes=4) == Cost(wall_s=2.0, cpu_s=1.0, passes=4)


def test_work_costs_processor_time_and_readings_grow():
    watch = Stopwatch()
    until = time.process_time() + 0.03
    while time.process_time() < until:
        pass
    first = watch.read(passes=5)
    assert first.cpu_s >= 0.03
    assert first.passes == 5
    second = watch.read()
    assert second.wall_s > first.wall_s
    assert second.cpu_s >= first.cpu_s
