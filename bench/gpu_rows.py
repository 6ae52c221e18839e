"""Rows of a CUDA device, written to a file as they are measured."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from bench import command_line
from bench.versions import versions


def write_rows(
    suite: str, rows: Callable[[], Iterator[dict[str, Any]]], out: Path
) -> None:
    """Measure without TF32 and write what there is after every row."""
    if not torch.cuda.is_available():
        raise SystemExit(
            f"bench.{suite} wants a CUDA device and none is here: run it where one is"
        )
    command_line.file(out)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    made = {**versions(), "device": torch.cuda.get_device_name()}
    written: list[dict[str, Any]] = []
    for row in rows():
        print(json.dumps(row), flush=True)
        written.append(row)
        record = {"suite": suite, "versions": made, "rows": written}
        out.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
