"""Which runs count: a rule, written before the rows are read, that says who died."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import ConfigError
from ..rows import Row
from .sample import Read, counted
from .selecting import PredictedAndMeasured, measured


@dataclass(frozen=True, kw_only=True)
class Alive:
    """The rule by which a run is alive; others are counted, and judged apart.

    A run is alive if each quantity that the rule names is finite in all its rows, the
    loss at the end is below chance (or below its start), and no bound is passed. A row
    without one of the labels belongs to no run, and a run without any such quantity is
    not judged: both stay as they are.

    Attributes:
        by: Labels that identify a run, such as ``("model", "rate", "trial")``.
        loss: Quantity that must end below ``chance``, or below its start; of several,
            the first that a run has.
        chance: Loss of a guess, or a function that gives it for a row, such as one of
            its number of classes; None for the run's own loss at the start.
        over: Label of time, by which the loss has a start and an end.
        bounds: Bound on the magnitude of a quantity in all rows of the run, such as
            ``{"norm": 1e6}``.

    Example:
        >>> from theodolite.core import Rows
        >>> rows = Rows({"quantity": "loss", "trial": t, "step": s, "value": value}
        ...             for t, curve in enumerate(([2.3, 0.1], [2.3, None]))
        ...             for s, value in enumerate(curve))
        >>> both, died = Alive(by=("trial",), loss="loss").split(
        ...     PredictedAndMeasured(Rows(), rows))
        >>> died, len(both.measured.where(quantity="loss"))
        ('1 of 2 runs died (1 not finite)', 2)
        >>> survival()(both).value
        0.5
    """

    by: tuple[str, ...]
    loss: str | tuple[str, ...] = ()
    chance: float | Callable[[Row], float] | None = None
    over: str = "step"
    bounds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.by or not (self.loss or self.bounds):
            raise ConfigError(
                "a rule for runs that count names the labels of a run and a loss or "
                f"bounds, and came with by={self.by}, loss={self.loss!r} and "
                f"bounds={dict(self.bounds)}"
            )

    def split(
        self, both: PredictedAndMeasured, *, keep: bool = False
    ) -> tuple[PredictedAndMeasured, str]:
        """Return the rows without those of dead runs, and how many runs died.

        A row ``run_alive``, 1 or 0, is added for each run with its labels; its
        ``cause`` says why a run is dead.

        Args:
            both: All rows.
            keep: Whether rows of dead runs stay.
        """
        kept: list[Any] = vars(both).setdefault("_split", [])  # claims share a rule
        for rule, kept_all, result in kept:
            if kept_all is keep and rule == self:
                return result
        result = self._split(both, keep=keep)
        kept.append((self, keep, result))
        return result

    def _split(
        self, both: PredictedAndMeasured, *, keep: bool
    ) -> tuple[PredictedAndMeasured, str]:
        """Return what ``split`` does."""
        runs: dict[tuple[Any, ...], list[Row]] = {}
        named = {*self._losses, *self.bounds}
        for row in both.measured:
            if row.get("quantity") in named and (run := self._run(row)) is not None:
                runs.setdefault(run, []).append(row)
        causes = {run: self._cause(rows) for run, rows in runs.items()}
        added = [
            {
                "quantity": "run_alive",
                **dict(zip(self.by, run, strict=True)),
                "value": 0.0 if cause else 1.0,
                "error": 0.0,
                **({"cause": cause} if cause else {}),
            }
            for run, cause in causes.items()
        ]
        rows = both.measured
        if not keep and any(causes.values()):
            rows = rows.where(lambda row: not causes.get(self._run(row) or ()))
        return replace(both, measured=rows + added), self._told(causes)

    @property
    def _losses(self) -> tuple[str, ...]:
        return (self.loss,) if isinstance(self.loss, str) else self.loss

    def _run(self, row: Row) -> tuple[Any, ...] | None:
        run = tuple(row.get(label) for label in self.by)
        return None if None in run else run

    def _cause(self, rows: list[Row]) -> str:
        """Return why a run is dead, or nothing."""
        values = [row.get("value") for row in rows]
        if not all(v is not None and math.isfinite(v) for v in values):
            return "not finite"
        for quantity, bound in self.bounds.items():
            sizes = [abs(r["value"]) for r in rows if r["quantity"] == quantity]
            if any(size > bound for size in sizes):
                return f"{quantity.replace('_', ' ')} above {bound:g}"
        curves = ([r for r in rows if r["quantity"] == name] for name in self._losses)
        curve = next(filter(None, curves), None)
        if curve is None:
            return ""
        curve.sort(key=lambda row: row.get(self.over, 0))
        chance = self.chance(curve[-1]) if callable(self.chance) else self.chance
        goal = curve[0]["value"] if chance is None else chance
        than = "its start" if chance is None else f"chance, {chance:.4g}"
        return "" if curve[-1]["value"] < goal else f"not below {than}"

    def _told(self, causes: Mapping[tuple[Any, ...], str]) -> str:
        """Return how many runs died, of what, and with which labels."""
        dead = Counter(cause for cause in causes.values() if cause)
        if not dead:
            return f"0 of {len(causes)} runs died" if causes else ""
        where = Counter(
            ", ".join(
                f"{label} {value}"
                for label, value in zip(self.by, run, strict=True)
                if label != "trial"
            )
            for run, cause in causes.items()
            if cause
        )
        why = ", ".join(f"{count} {cause}" for cause, count in dead.most_common())
        named = [f"{n} at {labels}" for labels, n in where.most_common(4) if labels]
        rest = f"; {', '.join(named)}{', …' if len(where) > 4 else ''}" if named else ""
        return f"{dead.total()} of {len(causes)} runs died ({why}{rest})"


def survival(**labels: Any) -> Read:
    """Read the share of networks all of whose runs with these labels are alive."""
    rows = measured("run_alive", **labels).called("share of networks alive")
    return counted(rows, lambda row: row["value"] == 1.0, name=str(rows))
