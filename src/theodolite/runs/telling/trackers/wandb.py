"""A Weights & Biases run per study (extra ``theodolite[wandb]``)."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from theodolite.core import Row, RunError, strict
from theodolite.runs.telling.trackers.metrics import library, metrics, texts

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
        self,
        project: str,
        mode: str | None = None,
        *,
        folder: Path | str | None = None,
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
            config=strict(dict(spec)),
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

        The library only tells its service that a run is over, and the service then
        writes what it still holds. Online that was uploaded before; offline it is all
        there is, so the service is shut down, which waits, once nobody uses it.
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
