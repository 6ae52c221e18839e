"""What benchmarks stand on: peak memory of a case, and suites side by side."""

import json
import shutil

import pytest
from bench import several
from bench.kernel_counts import assembled, in_unit_loops, row
from bench.peak_memory import rise_mib
from bench.progress import told
from bench.training_gpu import as_ratios

from theodolite.training.engines.stacked.cuda_kernel import LAYOUT


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


def test_notes_on_kernels_say_steps_and_memory():
    row = {
        "fraction of the measured float32 product rate": 0.5,
        "ratio to the loop": 2.0,
        "engine": "stacked",
        "kernel": "cuda",
        "steps timed": 4,
        "peak_gib": 0.6,
    }
    record = {
        "gaps": {"cuda": 1e-7},
        "loop": {"steps timed, of one cell": 3},
        "rows": [row],
        "versions": {},
        "device": "none",
    }
    (shown,) = as_ratios(record)["rows"]
    assert shown["note"] == "4 steps timed, 3 of the loop; peak 0.6 GiB"


def code_of(forward, back):
    """Return machine code as it is taken apart: two loops over units in one."""
    lines, place = [".L_x_0:"], 0
    for label, name, count in ((1, forward, 60), (2, back, 80)):
        lines.append(f".L_x_{label}:")
        for _ in range(count):
            place += 16
            lines.append(f"        /*{place:04x}*/                   {name} R1, R2 ;")
        place += 16
        lines.append(f"        /*{place:04x}*/              @!P0 BRA `(.L_x_{label}) ;")
    lines.append(f"        /*{place + 16:04x}*/               @P1 BRA `(.L_x_0) ;")
    return "\n".join(lines)


def test_instructions_are_those_of_the_loops_over_units():
    found = in_unit_loops(code_of("FFMA.FTZ", "SHFL.BFLY"), {})
    assert found == {"FFMA": 60, "SHFL": 80, "BRA": 2}


def test_loops_inside_those_over_units_count_as_often_as_they_go_round():
    inner = code_of("FFMA", "FFMA.FTZ").splitlines()[1:]
    lines = [".L_x_7:", *inner, "    /*9000*/   @P0 BRA `(.L_x_7) ;"]
    once = "\n".join(lines)
    twice = once.replace(".L_x_", ".L_x_9")
    found = in_unit_loops(f"{once}\n{twice}", {60: 5, 80: 4})
    # Both units hold a loop of 60 products, one of 80, and two jumps of their own.
    assert found == {"FFMA": 2 * (5 * 60 + 4 * 80), "BRA": 2 * (5 + 4 + 2)}


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(shutil.which, ("nvcc", "nvdisasm", "cuobjdump"))),
    reason="no CUDA toolkit",
)
def test_lanes_fit_registers_and_stay_short():
    counts = row(*assembled())
    assert counts["spilled bytes a thread"] == 0
    assert counts["warps a multiprocessor"] == LAYOUT.resident
    assert counts["tensor products"] == 0
    assert counts["kilobytes of code"] < 48
