"""Run the benchmarks and print their tables: ``make bench``.

``python -m bench [suite …]`` runs some suites or all, one a core at a time, and writes
a file for each into ``bench/results/``; ``python -m bench --docs`` writes
``docs/benchmarks.md`` from those. ``BENCH_JOBS=1`` runs one after the other.
"""

import json
import os
import resource
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

# Before torch or jax is imported: one thread each, and no accelerator.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

from bench.pages import SUITES, plain, write_docs
from bench.several import run_several
from bench.versions import versions

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run what the command line names."""
    wanted = sys.argv[1:]
    if wanted == ["--docs"]:
        print(write_docs(RESULTS))
        return
    unknown = [name for name in wanted if name not in SUITES]
    if unknown:
        raise SystemExit(f"no suite {unknown[0]!r}: choose from {', '.join(SUITES)}")
    away = [name for name in wanted if not SUITES[name].here]
    if away:
        raise SystemExit(
            f"suite {away[0]!r} wants what make bench does not install: run python -m "
            f"bench.{away[0]} where it is"
        )
    names = wanted or [name for name in SUITES if SUITES[name].here]
    if len(names) > 1:
        failed = run_several(names, RESULTS)
        if failed:
            raise SystemExit(f"suites that failed: {', '.join(failed)}")
        return
    run_one(names[0])


def run_one(name: str) -> None:
    """Run one suite in this process and write its rows down."""
    import torch

    from bench.peak_memory import finish

    torch.set_num_threads(1)
    start = time.monotonic()
    rows = run(name)
    finish()
    spent = time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    record = {
        "suite": name,
        "versions": versions(),
        "processor_seconds": round(spent),
        "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    wall = time.monotonic() - start
    print(f"done: {spent:.0f} s of a processor in {wall:.0f} s", flush=True)


def run(name: str) -> list[dict[str, Any]]:
    """Run one suite, printing its rows, and return them as plain values."""
    print(f"\n{SUITES[name].title}", flush=True)
    rows = []
    for result in import_module(f"bench.{name}").run():
        row = result if isinstance(result, dict) else result.to_dict()
        rows.append({key: _rounded(value) for key, value in row.items()})
        print(plain(rows[-1]), flush=True)
    return rows


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
