"""Tell other people's dashboards what a run finds; the run folder stays the record."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, Self, runtime_checkable

from theodolite.core import ConfigError, Row, unknown_name

_LOG = logging.getLogger("theodolite.tracking")


@runtime_checkable
class Tracker(Protocol):
    """Something that is told of a run; see :class:`Tracking` for its safety."""

    def start(self, spec: Mapping[str, Any]) -> None:
        """Begin a run: ``paper``, ``study``, ``digest``, ``config`` and the like."""
        ...

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Take the rows of one cell; a text as value is a verdict or a remark."""
        ...

    def finish(self) -> None:
        """End the run."""
        ...


class Tracking:
    """Trackers that cannot harm a run; itself a tracker.

    One that raises is named once in the log, on standard error by default, and
    told nothing more.

    Args:
        trackers: Whom to tell.
    """

    def __init__(self, trackers: Iterable[Tracker] = ()) -> None:
        self._live = list(trackers)
        self._started = False

    @classmethod
    def of(cls, trackers: "Iterable[Tracker] | Tracking") -> "Tracking":
        """Return the trackers as one, unless they are already."""
        return trackers if isinstance(trackers, Tracking) else cls(trackers)

    def __bool__(self) -> bool:
        return bool(self._live)

    @contextmanager
    def during(self, spec: Mapping[str, Any]) -> Iterator[Self]:
        """Start and finish around a run; inside another ``during`` do nothing."""
        if self._started:
            yield self
            return
        self.start(spec)
        self._started = True
        try:
            yield self
        finally:
            self._started = False
            self.finish()

    def start(self, spec: Mapping[str, Any]) -> None:
        """Begin a run."""
        self._tell(lambda tracker: tracker.start(spec))

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Take the rows of one cell."""
        rows = list(rows)
        self._tell(lambda tracker: tracker.log(rows, step))

    def finish(self) -> None:
        """End the run."""
        self._tell(lambda tracker: tracker.finish())

    def _tell(self, message: Callable[[Tracker], None]) -> None:
        for tracker in list(self._live):
            try:
                message(tracker)
            except Exception as error:
                self._live.remove(tracker)
                reason = " ".join(str(error).split())[:300]
                _LOG.warning(
                    "%s failed (%s: %s) and is told nothing more; the run goes on",
                    type(tracker).__name__,
                    type(error).__name__,
                    reason,
                )


def tracker_for(text: str) -> Tracker:
    """Return the tracker that ``--track`` names.

    Args:
        text: ``tensorboard:FOLDER``, ``mlflow:URI`` or ``wandb:PROJECT``.

    Raises:
        UnknownNameError: No such kind of tracker.
        ConfigError: Nothing after the colon, or the library is not installed.

    Example:
        >>> tracker_for("tensorbord:out")
        Traceback (most recent call last):
        theodolite.core.errors.UnknownNameError: unknown tracker 'tensorbord': did \
you mean 'tensorboard'? known: mlflow, tensorboard, wandb
    """
    from theodolite.runs.telling.trackers.mlflow import MLflowTracker
    from theodolite.runs.telling.trackers.tensorboard import TensorBoardTracker
    from theodolite.runs.telling.trackers.wandb import WandbTracker

    kinds: dict[str, tuple[Callable[[str], Tracker], str]] = {
        "tensorboard": (TensorBoardTracker, "FOLDER"),
        "mlflow": (MLflowTracker, "URI"),
        "wandb": (WandbTracker, "PROJECT"),
    }
    kind, _, target = text.partition(":")
    if kind not in kinds:
        raise unknown_name("tracker", kind, kinds)
    make, wanted = kinds[kind]
    if not target.strip():
        raise ConfigError(
            f"the tracker {text!r} names no {wanted.lower()}: use {kind}:{wanted}"
        )
    return make(target)
