"""The survey's measures and rules as one probe of a training."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from torch import Tensor, nn

from theodolite.core import FOREIGN, Cost, NormMode, Rows, as_integer, error_text
from theodolite.training import Attached, Every, Probe, Snapshot

from ..findings.rulebook import check_rules
from ..measures.context import SurveyContext, opened_context
from ..planning.effort import gradients_of
from ..planning.running import chosen, run_measures
from ..records.whole_survey import Survey
from .alerts import RUN_RULES, Alert, Judge
from .course import Course

# Measures of one gradient pass, and those of the learning rate.
DEFAULT = ("map", "signal", "units", "norms", "curvature", "rates")
# Outcomes that are no failure: the effort or the model has no more.
_EXPECTED = ("done", "skipped", "refused")


class Watch:
    """A watched training: its numbers and alerts.

    It is the context that :func:`~theodolite.survey.watch` returns, with its settings,
    and what trainer callbacks share. The measure ``checks`` is left out, since it
    trains on its own.

    Attributes:
        probe: The probe, for a watcher.
        attached: Watches a plain loop inside of the context.
    """

    attached: Attached

    def __init__(
        self,
        *,
        every: int,
        measures: Sequence[str] | None = None,
        effort: str | float = "quick",
        norm_mode: NormMode | str = "as_is",
        seed: int = 0,
        ignore: Sequence[str] = (),
        on_alert: Callable[[Alert], object] | None = None,
    ) -> None:
        as_integer("every", every, 1)
        check_rules([name for name in ignore if name not in RUN_RULES])
        names = DEFAULT if measures is None else measures
        self._measures = [each for each in chosen(names) if each.name != "checks"]
        self._effort, self._norm_mode = gradients_of(effort), NormMode(norm_mode)
        self._seed, self._every = seed, every
        self.probe = Probe("survey", self._look, Every(every))
        self._rows: list[dict[str, Any]] = []
        self._judge = Judge(ignore, on_alert)
        self._failures: dict[str, str] = {}
        self._settings: dict[str, Any] = {}
        self._title, self._spent_s, self._steps = "", 0.0, 0
        self._norm_layers: Mapping[str, Sequence[str]] = {}
        self.retired: Callable[[], Mapping[str, str]] = dict

    def on_step(
        self, model: nn.Module, step: int, loss: Tensor | None, function: str
    ) -> None:
        """Judge the loss of a step; called before every update."""
        self._steps = step + 1
        self._judge.at_step(model, step, loss, function)

    def __enter__(self) -> Self:
        self.attached.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self.attached.__exit__(*raised)

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """What went wrong so far."""
        return tuple(self._judge.alerts)

    def rows(self) -> Rows:
        """Return all that was measured so far."""
        return Rows(self._rows)

    def course(self) -> Course:
        """Return what was measured so far."""
        return Course(
            title=self._title,
            every=self._every,
            steps=self._steps,
            measured=self.rows(),
            alerts=self.alerts,
            failures={**self._failures, **self.retired()},
            cost=Cost(wall_s=self._spent_s),
            norm_mode=str(self._norm_mode),
            norm_layers=self._norm_layers,
            settings=self._settings,
        )

    def _look(self, at: Snapshot) -> list[dict[str, Any]]:
        start = time.perf_counter()
        self._title = type(at.model).__name__
        self._settings = self._settings or _settings(at)
        seen = at.loss == at.loss  # with its dropout, as the training computed it
        row = {"quantity": "training_loss", "value": at.loss, "error": None}
        rows: list[dict[str, Any]] = [row] if seen else []
        problem = replace(at.problem, norm_mode=self._norm_mode, seed=self._seed)
        if problem.batches is None or problem.loss is None:
            self._failures["survey"] = (
                "the loss of the step is not seen: call the model that is watched once "
                "a step, then backward(), or pass batches= and loss="
            )
        else:
            try:
                with opened_context(
                    problem, effort=self._effort, optimizer=at.optimizer
                ) as context:
                    survey = self._survey(context)
                self._judge.at_look(at.step, survey, at.model, at.optimizer)
                rows += [dict(row) for row in survey.rows()]
            except FOREIGN as failed:
                self._failures["survey"] = error_text(failed)
        self._rows += [{**row, "step": at.step} for row in rows]
        self._spent_s += time.perf_counter() - start
        return rows

    def _survey(self, context: SurveyContext) -> Survey:
        outcomes = tuple(run_measures(context, self._measures))
        if any(each.status == "interrupted" for each in outcomes):
            raise KeyboardInterrupt
        failed = [each for each in outcomes if each.status not in _EXPECTED]
        self._failures = {each.measure: each.reason for each in failed}
        self._norm_layers = context.net.norm_layers
        return Survey(
            title=self._title,
            n_parameters=sum(p.numel() for p in context.net.model.parameters()),
            blocks=context.net.block_map.blocks,
            measured=outcomes,
            effort=self._effort,
            seed=self._seed,
            norm_mode=str(context.net.problem.mode),
            norm_layers=context.net.norm_layers,
        )


def _settings(at: Snapshot) -> dict[str, Any]:
    """Return the loss, and the optimiser with the settings of its first group."""
    loss = at.problem.loss
    name = getattr(loss, "__name__", type(loss).__name__)
    facts: dict[str, Any] = {"loss": "not seen" if loss is None else name}
    if at.optimizer is not None:
        group = at.optimizer.param_groups[0]
        facts["optimizer"] = type(at.optimizer).__name__
        facts |= {k: v for k, v in group.items() if v and isinstance(v, int | float)}
    return facts
