"""The path to a number is as long as ARCHITECTURE.md says, and is counted correctly."""

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from bench.path_length import count

ROOT = Path(__file__).parents[1]
CALLER = """
def begin(other):
    return [other.back(again) for _ in range(2)]

def again():
    return 1
"""
CALLED = """
def back(again):
    return max(step() for step in [again])

def alone():
    return sorted([3, 2], key=lambda number: -number)
"""


def loaded(folder, name, text):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_callbacks_and_generators_count_but_comprehensions_and_imports_do_not(tmp_path):
    caller, called = loaded(tmp_path, "a", CALLER), loaded(tmp_path, "b", CALLED)
    length = count(lambda: caller.begin(called), tmp_path)
    assert length.row == (2, 4, 1)  # begin, back, its generator, again
    assert length.pairs == [("a.py", "b.py")]
    assert count(called.alone, tmp_path).row == (1, 2, 0)
    assert count(lambda: loaded(tmp_path, "c", "def f(): pass\nf()"), tmp_path).row == (
        0, 0, 0,
    )  # fmt: skip


def test_table_of_architecture_is_what_the_counter_counts():
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bench.path_length"]
    printed = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() in (ROOT / "ARCHITECTURE.md").read_text(), (
        f"run python -m bench.path_length --write, for this table:\n{printed.stdout}"
    )


def test_the_path_to_a_number_stays_short():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    row = r"{}.*?\| (\d+) \| (\d+) \| (\d+) \|"
    limits = {"extreme_eigenvalues": (25, 15, 4), "trace": (26, 15, 4)}
    limits["theodolite run"] = (60, 30, 9)
    for call, most in limits.items():
        (counts,) = re.findall(row.format(rf"\| `{call}\b"), page)
        assert all(int(n) <= limit for n, limit in zip(counts, most, strict=True)), call
