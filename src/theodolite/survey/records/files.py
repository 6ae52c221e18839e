"""Write surveys, comparisons and courses as files, atomically."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theodolite.runs import write_text


def write_json(path: str | Path, content: Mapping[str, Any]) -> Path:
    """Write plain values as JSON; see :func:`runs.write_text`."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return write_text(path, text + "\n")
