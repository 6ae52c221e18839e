"""Surveys, comparisons and courses as files: whole or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theodolite.core import RunError
from theodolite.runs import replace_file


def write_text(path: str | Path, text: str) -> Path:
    """Write a whole file, with the folders it needs.

    Args:
        path: File to write.
        text: Its content.

    Returns:
        The file written.

    Raises:
        RunError: It cannot be written there.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, text.encode("utf-8", "replace"))
    except (OSError, ValueError) as wrong:
        reason = getattr(wrong, "strerror", None) or wrong
        raise RunError(
            f"cannot write {target} ({reason}): pass another destination"
        ) from wrong
    return target


def write_json(path: str | Path, content: Mapping[str, Any]) -> Path:
    """Write plain values as JSON; see :func:`write_text`."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return write_text(path, text + "\n")
