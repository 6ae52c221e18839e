"""TensorBoard event files (extra ``theodolite[tensorboard]``)."""

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from theodolite.core import Row, strict
from theodolite.runs.telling.trackers.metrics import library, metrics, texts


class TensorBoardTracker:
    """Write a run's rows as scalars under ``folder/paper/study/digest``.

    A resumed run adds to what is there.

    Args:
        folder: What ``tensorboard --logdir`` is given.
    """

    def __init__(self, folder: Path | str) -> None:
        library("tensorboard", "tensorboard")
        self._folder = Path(folder)
        self._study = ""
        self._writer: Any = None

    def start(self, spec: Mapping[str, Any]) -> None:
        """Open an event file and write the config as text."""
        home = "tensorboard.summary.writer.event_file_writer"
        parts = [str(spec[key]) for key in ("paper", "study", "digest") if key in spec]
        self._study = str(spec.get("study", "run"))
        place = self._folder.joinpath(*parts)
        writer = library(home, "tensorboard").EventFileWriter
        self._writer = writer(str(place))
        text = json.dumps(strict(dict(spec)), indent=2, ensure_ascii=False)
        self._text(f"{self._study}/spec", f"```json\n{text}\n```", 0)

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Add scalars, and texts for verdicts."""
        rows = list(rows)
        proto = library("tensorboard.compat.proto.summary_pb2", "tensorboard").Summary
        by_step: dict[int, list[Any]] = {}
        for metric in metrics(rows, step, self._study):
            value = proto.Value(tag=metric.tag, simple_value=metric.value)
            by_step.setdefault(metric.step, []).append(value)
        for at, values in by_step.items():
            self._event(proto(value=values), at)
        for tag, text in texts(rows, self._study):
            self._text(tag, text, step)
        self._writer.flush()

    def finish(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _text(self, tag: str, text: str, step: int) -> None:
        plugin = library("tensorboard.plugins.text.summary_v2", "tensorboard")
        self._event(plugin.text_pb(tag, text), step)

    def _event(self, summary: Any, step: int) -> None:
        proto = library("tensorboard.compat.proto.event_pb2", "tensorboard").Event
        event = proto(wall_time=time.time(), step=step, summary=summary)
        self._writer.add_event(event)
