"""Run every benchmark and print the table: ``make bench``."""

import json
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

SUITES = ("closed_forms",)


def main() -> None:
    import torch

    torch.set_num_threads(1)
    wanted = sys.argv[1:] or SUITES
    rows = []
    for name in wanted:
        for result in import_module(f"bench.{name}").run():
            rows.append({"suite": name, **result.to_dict()})
            print(line(rows[-1]), flush=True)
    versions = {p: version(p) for p in ("theodolite", "torch", "numpy", "scipy")}
    record = {"versions": versions, "python": platform.python_version(), "rows": rows}
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    for name in wanted:
        part = {**record, "rows": [row for row in rows if row["suite"] == name]}
        path = folder / f"{name}.json"
        path.write_text(json.dumps(part, indent=2, ensure_ascii=False) + "\n")


def line(row: dict) -> str:
    ratio = "   —  " if row["ratio"] is None else f"{row['ratio']:5.1f}×"
    return (
        f"{ratio}  {row['task']}  against {row['peer']} (agree {row['agree']})"
        f"{'; ' + row['note'] if row['note'] else ''}"
    )


if __name__ == "__main__":
    main()
