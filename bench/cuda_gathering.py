"""The files of ``bench.cuda``, a network, batch and norm mode each, as one result."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def gather(folder: Path, place: Path) -> None:
    """Write the rows of all files in a folder as one result."""
    files = sorted(folder.glob("*.json"), key=_when)
    if not files:
        raise SystemExit(
            f"no rows lie in {str(folder)!r}: run bench.cuda --out {folder} first"
        )
    record = gathered(files)
    place.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def gathered(files: Sequence[Path]) -> dict[str, Any]:
    """Return the rows of files as a page shows them."""
    records = [json.loads(file.read_text()) for file in files]
    rows = []
    for row in (row for record in records for row in record["rows"]):
        statistics = "batch" if row["norm_mode"] == "batch" else "running"
        normed = row["model"].startswith("ResNet")
        words = f", {statistics} statistics" if normed else ""
        gap, peak = row.get("gap"), row.get("peak_gib")
        launches, busy = row.get("launches"), row.get("busy")
        rows.append(
            {
                "task": f"{row['model']}, {row['batch']} samples{words}",
                "way": row.get("way", ""),
                "gradients": row.get("gradients"),
                "agree": "—" if gap is None else f"to {gap:.0e}",
                "peak": "" if peak is None else f"{peak:.1f} GiB",
                "kernels": "" if busy is None else f"{launches:,}, busy {busy:.0%}",
                "note": row.get("note", ""),
            }
        )
    versions = {**records[0]["versions"], "device": records[0]["device"]}
    return {"suite": "cuda", "versions": versions, "rows": rows}


def _when(file: Path) -> float:
    return file.stat().st_mtime
