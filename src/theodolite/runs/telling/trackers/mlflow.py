"""An MLflow run per study (extra ``theodolite[mlflow]``)."""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from theodolite.core import Row
from theodolite.runs.telling.trackers.metrics import library, metrics, texts

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
        flat = [parameter(_name(k), str(v)[:_VALUE]) for k, v in _flat(spec)]
        for first in range(0, len(flat), _PARAMS):
            self._client.log_batch(self._run, params=flat[first : first + _PARAMS])

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Add metrics, and tags for verdicts."""
        rows, now = list(rows), int(1000 * time.time())
        metric = self._mlflow.entities.Metric
        entries = [
            metric(_name(m.tag), m.value, now, m.step)
            for m in metrics(rows, step, self._study)
        ]
        for first in range(0, len(entries), _BATCH):
            self._client.log_batch(self._run, metrics=entries[first : first + _BATCH])
        for tag, text in texts(rows, self._study):
            self._client.set_tag(self._run, _name(tag), text[:_VALUE])

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


def _name(tag: str) -> str:
    """Return a tag with the characters that MLflow allows."""
    return re.sub(r"[^\w./ -]", " ", tag.replace("=", "-"))[:_NAME]


def _flat(mapping: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
