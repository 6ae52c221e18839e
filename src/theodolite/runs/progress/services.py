"""Rows to TensorBoard, MLflow and Weights & Biases, one extra for each."""

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from theodolite.core import Row, RunError, to_strict_json

from .trackers import library, metrics, texts


class TensorBoardTracker:
    """Write a run's rows as scalars under ``folder/paper/study/digest``.

    A resumed run adds to the existing scalars.

    Args:
        folder: Folder to pass to ``tensorboard --logdir``.
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
        text = json.dumps(to_strict_json(dict(spec)), indent=2, ensure_ascii=False)
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


# Limits of MLflow on one request and on the length of names and values.
_BATCH, _PARAMS, _NAME, _VALUE = 1000, 100, 250, 5000
_DIGEST = "theodolite.digest"


class MLflowTracker:
    """Log rows as metrics, the config as parameters and verdicts as tags.

    A run whose digest is in the experiment already is resumed.

    Args:
        uri: Tracking server or store, such as ``http://host:5000`` or ``file:mlruns``.
        experiment: Name of the experiment, made where there is none.
    """

    def __init__(self, uri: str, experiment: str = "theodolite") -> None:
        # A server that does not answer must not hold up the run for minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        if uri.startswith("file:") or "://" not in uri:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self._mlflow = library("mlflow", "mlflow")
        self._uri, self._experiment = uri, experiment
        self._client: Any = None
        self._run = ""
        self._study = ""

    def start(self, spec: Mapping[str, Any]) -> None:
        """Make or resume the run of a spec."""
        self._client = self._mlflow.MlflowClient(tracking_uri=self._uri)
        self._study = str(spec.get("study", "run"))
        self._run, fresh = self._find_run(spec)
        if not fresh:
            self._client.set_terminated(self._run, status="RUNNING")
            return
        parameter = self._mlflow.entities.Param
        flat = [parameter(_allowed_name(k), str(v)[:_VALUE]) for k, v in _flat(spec)]
        for first in range(0, len(flat), _PARAMS):
            self._client.log_batch(self._run, params=flat[first : first + _PARAMS])

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Add metrics, and tags for verdicts."""
        rows, now = list(rows), int(1000 * time.time())
        metric = self._mlflow.entities.Metric
        entries = [
            metric(_allowed_name(m.tag), m.value, now, m.step)
            for m in metrics(rows, step, self._study)
        ]
        for first in range(0, len(entries), _BATCH):
            self._client.log_batch(self._run, metrics=entries[first : first + _BATCH])
        for tag, text in texts(rows, self._study):
            self._client.set_tag(self._run, _allowed_name(tag), text[:_VALUE])

    def finish(self) -> None:
        """End the run."""
        if self._run:
            self._client.set_terminated(self._run)
            self._run = ""

    def _find_run(self, spec: Mapping[str, Any]) -> tuple[str, bool]:
        client, digest = self._client, str(spec.get("digest", ""))
        experiment = client.get_experiment_by_name(self._experiment)
        if experiment is None:
            place = client.create_experiment(self._experiment)
        else:
            place = experiment.experiment_id
            wanted = f"tags.`{_DIGEST}` = '{digest}'"
            known = client.search_runs([place], wanted, max_results=1) if digest else []
            if known:
                return known[0].info.run_id, False
        name = f"{self._study} {spec.get('scale', '')}".strip()
        tags = {_DIGEST: digest} if digest else {}
        return client.create_run(place, run_name=name, tags=tags).info.run_id, True


def _allowed_name(tag: str) -> str:
    """Return a tag with the characters that MLflow allows."""
    return re.sub(r"[^\w./ -]", " ", tag.replace("=", "-"))[:_NAME]


def _flat(mapping: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


# The axis of every chart: cells finish in any order, which W&B's own step forbids.
_AXIS = "step"


class WandbTracker:
    """Log rows as metrics over ``step``, and verdicts in the summary.

    Args:
        project: Project of the run.
        mode: ``online``, ``offline`` or ``disabled``; W&B's own default otherwise.
        folder: Where W&B keeps its files; its own default otherwise.
    """

    def __init__(
        self, project: str, mode: str | None = None, *, folder: Path | str | None = None
    ) -> None:
        self._wandb = library("wandb", "wandb")
        self._project, self._mode = project, mode
        self._folder = None if folder is None else str(folder)
        self._run: Any = None
        self._study = ""

    def start(self, spec: Mapping[str, Any]) -> None:
        """Begin a run with the spec as its config."""
        self._study = str(spec.get("study", "run"))
        if self._folder is not None:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
        self._run = self._wandb.init(
            project=self._project,
            mode=self._mode,
            dir=self._folder,
            name=f"{self._study} {spec.get('scale', '')}".strip(),
            group=str(spec.get("digest", "")) or None,
            config=to_strict_json(dict(spec)),
            settings=self._wandb.Settings(silent=True, console="off"),
            reinit="create_new",
        )
        self._run.define_metric("*", step_metric=_AXIS)

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Add metrics, and entries of the summary for verdicts."""
        rows = list(rows)
        by_step: dict[int, dict[str, float]] = {}
        for metric in metrics(rows, step, self._study):
            by_step.setdefault(metric.step, {})[metric.tag] = metric.value
        for at, values in by_step.items():
            self._run.log({_AXIS: at, **values})
        for tag, text in texts(rows, self._study):
            self._run.summary[tag] = text

    def finish(self) -> None:
        """End the run; an offline run's file is then complete.

        The library only notifies its service that a run is over, and the service then
        writes its remaining data. Online, the data was uploaded before. Offline, the
        service is shut down once no run uses it, which waits for the write.
        """
        if self._run is None:
            return
        run, self._run = self._run, None
        offline = run.offline
        run.finish()
        if offline and self._wandb.setup().most_recent_active_run is None:
            self._shut_down()

    def _shut_down(self) -> None:
        try:
            self._wandb.teardown()
        except SystemExit as error:  # the library's answer to a service that failed
            raise RunError(
                f"the W&B service ended with code {error.code}, so the offline run may "
                "be incomplete: look at its debug-internal.log"
            ) from None
