"""What benchmarks stand on: peak memory of a case, and suites side by side."""

import json

import pytest
from bench import several
from bench.high_water import rise_mib
from bench.telling import told


def test_the_rise_is_what_a_case_takes_whatever_came_before():
    rises = [rise_mib("tests.memory_cases", case) for case in ("64", "broken", "16")]
    assert rises[0] == pytest.approx(64, abs=4)
    assert rises[1] is None
    assert rises[2] == pytest.approx(16, abs=4)


def test_every_item_is_told_with_the_next_one(capsys):
    assert list(told([("first", 1), ("second", 2)])) == [1, 2]
    assert capsys.readouterr().out.splitlines() == [
        "… 1 of 2: first; next: second",
        "… 2 of 2: second; next: the end",
    ]


def test_the_longest_suite_starts_first_and_failures_are_named(
    tmp_path, monkeypatch, capsys
):
    for name, seconds in (("short", 3), ("long", 90)):
        record = {"processor_seconds": seconds}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    monkeypatch.setenv("BENCH_JOBS", "1")
    failed = several.run_several(["short", "long", "new"], tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 suites, 1 at a time: new, long, short"
    assert "[long] starts; next: short" in lines
    # There are no such suites: each ends in a sentence, and all are named.
    assert any(line.startswith("[short] no suite 'short': choose") for line in lines)
    assert failed == ["new", "long", "short"]
