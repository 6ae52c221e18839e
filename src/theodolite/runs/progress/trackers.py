"""Trackers send the rows of a run to a dashboard as well as to the run folder."""

import importlib
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from theodolite.core import ConfigError, Row, printable, unknown_name

_LOG = logging.getLogger("theodolite.tracking")


@runtime_checkable
class Tracker(Protocol):
    """Receives the rows of a run; :class:`Tracking` catches its errors."""

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
    """Several trackers as one; their errors never stop a run.

    A tracker that raises is named once in the log, on standard error by default, and
    is not called again.

    Args:
        trackers: Trackers to call.
    """

    def __init__(self, trackers: Iterable[Tracker] = ()) -> None:
        self._live = list(trackers)
        self._started = False

    @classmethod
    def of(cls, trackers: "Iterable[Tracker] | Tracking") -> "Tracking":
        """Return one :class:`Tracking` of all trackers."""
        return trackers if isinstance(trackers, Tracking) else cls(trackers)

    def __bool__(self) -> bool:
        return bool(self._live)

    @contextmanager
    def during(self, spec: Mapping[str, Any]) -> Iterator[Self]:
        """Start trackers, finish them on exit; a nested ``during`` does nothing."""
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
                reason = printable(" ".join(str(error).split())[:300])
                _LOG.warning(
                    "%s failed (%s: %s) and is not called again; the run goes on",
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
    from .services import MLflowTracker, TensorBoardTracker, WandbTracker

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


# The cost and the status of a value are not part of its name.
_CIRCUMSTANCES = frozenset(("status", "cpu_s", "wall_s", "passes"))
_NOT_LABELS = _CIRCUMSTANCES | {"quantity", "value", "error", "step", "loss"}


@dataclass(frozen=True)
class Metric:
    """One number for a tracker."""

    tag: str
    step: int
    value: float


def metrics(rows: Iterable[Row], step: int, study: str) -> Iterator[Metric]:
    """Yield the finite numbers of rows, their errors, and how many are not finite.

    Args:
        rows: Rows of one cell.
        step: Step of rows that have no ``step``.
        study: First part of every tag.

    Example:
        >>> rows = [{"quantity": "loss", "lr": 0.1, "step": 5, "value": 0.25},
        ...         {"quantity": "loss", "lr": 9.0, "step": 5, "value": None}]
        >>> for metric in metrics(rows, 0, "grid"):
        ...     print(metric.tag, metric.step, metric.value)
        grid/loss/lr=0.1 5 0.25
        grid/not_finite 0 1.0
    """
    n_lost = 0
    for row in rows:
        if isinstance(row.get("value"), str):
            continue
        own = _number(row.get("step"))
        at = step if own is None else int(own)
        value, error = _number(row.get("value")), _number(row.get("error"))
        n_lost += value is None
        if value is not None:
            yield Metric(tag_of(row, study), at, value)
        if error is not None:
            yield Metric(tag_of(row, study, ".error"), at, error)
    if n_lost:
        yield Metric(f"{study}/not_finite", step, float(n_lost))


def texts(rows: Iterable[Row], study: str) -> Iterator[tuple[str, str]]:
    """Yield (tag, text) of the rows whose value is a text, such as a verdict."""
    for row in rows:
        if isinstance(row.get("value"), str):
            yield tag_of(row, study), row["value"]


def tag_of(row: Row, study: str, suffix: str = "") -> str:
    """Return ``study/quantity/label=value,…``."""
    labels = ",".join(f"{k}={v}" for k, v in row.items() if k not in _NOT_LABELS)
    return "/".join(
        filter(None, (study, f"{row.get('quantity', 'value')}{suffix}", labels))
    )


def library(name: str, extra: str) -> Any:
    """Import the library of a tracker, or say how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"tracking with {extra} needs a library that cannot be imported ({error}): "
            f"pip install 'theodolite[{extra}]'"
        ) from error


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
