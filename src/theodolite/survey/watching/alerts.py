"""Rules along a run: what happened, at which step, and an alert when it does."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from torch import Tensor, nn

from theodolite.core import printable

from ..findings.evidence import body
from ..findings.rulebook import find
from ..records.finding import Finding
from ..records.whole_survey import Survey

# Losses that are never below zero, for targets and outputs as they should be.
_NEVER_NEGATIVE = frozenset(
    "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div "
    "binary_cross_entropy binary_cross_entropy_with_logits".split()
)
# All by choice: a loss that fell to this share of its start is learning; factors by
# which the loss and the gradient grow before it is said; looks before the latter.
_LEARNS, _GROWN, _RISEN, _JUMP, _LOOKS = 0.9, 10.0, 1.5, 1000.0, 3
# How different samples must be at the start, and how alike later, to have collapsed.
_APART, _ALIKE = 0.1, 1e-3
# Losses that are averaged at either end of a run.
_WINDOW = 20
# Looks by which a network should have learned, or what it started with is an alert.
_PATIENCE = 2
# Rules whose findings are alerts at the first look already.
_AT_ONCE = frozenset(("not-finite", "every-gradient-zero"))
# Rules that the survey does not have, since they need a run.
RUN_RULES = frozenset(("gradient-jumps", "loss-grows", "signals-collapse"))


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A finding at the step at which it happened.

    Attributes:
        step: Updates made before.
        finding: What was found.
    """

    step: int
    finding: Finding

    def __str__(self) -> str:
        where = ", ".join(self.finding.where[:3])
        said = f"step {self.step}: {self.finding.title}" + (where and f" ({where})")
        return printable(said)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Look:
    """What rules know of one look: its numbers, and the losses until then."""

    survey: Survey
    losses: Sequence[float]
    weights: tuple[tuple[float, float], ...]  # two sums over each parameter
    rate: float

    def value(self, quantity: str) -> float:
        row = self.survey.number(quantity)
        return math.nan if row is None or row["value"] is None else float(row["value"])

    def above_stable(self) -> float:
        """Return the rate over the stable one; 0 if that is within its error of 1."""
        row = self.survey.number("rate_over_stable")
        if row is None or row["value"] is None or row["error"] is None:
            return 0.0
        return row["value"] if row["value"] - row["error"] > 1 else 0.0


class Judge:
    """Judges a run by the survey's rules, and by what changes from look to look.

    The survey's rules raise no alert while the loss is below its start: a network that
    learns is not sick. What they find at the first look is an alert only if the network
    has not learned by the third, since many sound networks start that way.

    Args:
        ignore: Names of rules that raise no alert.
        on_alert: Called with every alert.
    """

    def __init__(
        self,
        ignore: Sequence[str] = (),
        on_alert: Callable[[Alert], object] | None = None,
    ) -> None:
        self.alerts: list[Alert] = []
        self._ignore, self._on_alert = set(ignore), on_alert
        self._pending: list[tuple[int, Tensor, str]] = []
        self._losses: list[float] = []
        self._looks: list[_Look] = []
        self._early: set[str] = set()
        self._active: set[str] = set()

    def at_step(
        self, model: nn.Module, step: int, loss: Tensor | None, function: str
    ) -> None:
        """Judge the loss of a step; on a GPU at the next look, so that none waits."""
        if loss is not None:
            self._pending.append((step, loss, function))
            if loss.device.type == "cpu":
                self._read_losses(model)

    def at_look(
        self, step: int, survey: Survey, model: nn.Module, optimizer: Any
    ) -> None:
        """Judge the numbers of a look."""
        self._read_losses(model)
        held = [p.detach() for p in model.parameters() if p.requires_grad and p.numel()]
        sums = ((float(p.double().sum()), float(p.double().abs().sum())) for p in held)
        groups = getattr(optimizer, "param_groups", [])
        look = _Look(
            survey=survey,
            losses=tuple(self._losses),
            weights=tuple(sums),
            rate=max((float(group.get("lr", 0.0)) for group in groups), default=0.0),
        )
        past = self._looks
        found = [f for rule in _RULES for f in rule(past, look)]
        start, now = _ends(look.losses)
        learning = now < _LEARNS * start
        if not learning:
            found += [f for f in find(survey) if f.severity in ("sick", "warning")]
        if "not-finite-in-training" in self._active:  # which was said at its step
            found = [f for f in found if f.rule != "not-finite"]
        rules = {f.rule for f in found}
        if not past:
            self._early = rules - _AT_ONCE
        if len(past) >= _PATIENCE and not learning:
            self._early = set()
        for finding in found:
            if finding.rule not in self._early:
                self._raise(step, finding)
        of_steps = {"not-finite-in-training", "loss-below-zero"}
        self._active = (self._active & of_steps) | (rules - self._early)
        # Older looks are read for their first and for single numbers alone.
        self._looks = [*past[:1], *past[1:][-2 * _LOOKS :], look]

    def _read_losses(self, model: nn.Module) -> None:
        pending, self._pending = self._pending, []
        for step, loss, function in pending:
            value = float(loss)
            self._losses.append(value)
            finding = _of_loss(value, function, model)
            if finding is None:
                self._active -= {"not-finite-in-training", "loss-below-zero"}
            else:
                self._raise(step, finding)

    def _raise(self, step: int, finding: Finding) -> None:
        if finding.rule in self._active | self._ignore:
            return
        self._active.add(finding.rule)
        alert = Alert(step=step, finding=finding)
        self.alerts.append(alert)
        log = logging.getLogger("theodolite")
        log.warning("%s", alert)
        try:
            if self._on_alert is not None:
                self._on_alert(alert)
        except Exception as error:
            log.warning("on_alert raised %s: training goes on", error)


def _of_loss(value: float, function: str, model: nn.Module) -> Finding | None:
    """Return what is wrong with the loss of a step, if anything."""
    if not math.isfinite(value):
        named = model.named_parameters()
        return _finding(
            "not-finite-in-training",
            "The loss is NaN or infinite",
            "Go back to a checkpoint; lower the rate, clip gradients, or look for "
            "divisions by zero, logarithms and overflow.",
            value,
            where=tuple(n for n, p in named if not bool(p.isfinite().all())),
            source="arithmetic of floating point, IEEE 754: NaN passes on",
        )
    if value < 0 and function in _NEVER_NEGATIVE:
        return _finding(
            "loss-below-zero",
            f"The loss is below zero, which {function} cannot be",
            "Targets or outputs are not what this loss expects, such as probabilities "
            "in place of their logarithms, or targets outside of 0 to 1.",
            value,
            source="the definition of the loss",
        )
    return None


def _gradients(past: Sequence[_Look], look: _Look) -> Iterator[Finding]:
    """Yield gradients that are all zero, or a thousand times as large as before."""
    row = look.survey.number("n_zero_gradients")
    if row is not None and row["value"] == row.get("n_parameters") != 0:
        yield _finding(
            "every-gradient-zero",
            "Every gradient is exactly zero",
            "No step changes anything: all paths from the weights to the loss are "
            "dead, saturated or cut.",
            0.0,
            quantity="gradient_norm",
            source="the chain rule",
        )
    before = [norm for each in past if (norm := each.value("gradient_norm")) > 0]
    now = look.value("gradient_norm")
    if len(before) >= _LOOKS and now > _JUMP * median(before):
        yield _finding(
            "gradient-jumps",
            f"The gradient is {now / median(before):.0f} times as large as before",
            "One step with it can undo the training. Lower the rate, or clip.",
            now,
            _JUMP * median(before),
            quantity="gradient_norm",
            source="the factor of a thousand is ours",
        )


def _moves(past: Sequence[_Look], look: _Look) -> Iterator[Finding]:
    """Yield that no weight has changed since the last look."""
    if past and past[-1].weights == look.weights:
        if past[-1].rate or not look.rate:  # else a rate that warms up from zero
            yield _finding(
                "nothing-moves",
                "No weight has changed since the last look",
                f"The optimiser was called, and its rate is {look.rate:.3g}: look for "
                "a rate of zero, gradients of zero, and an optimiser of another model.",
                0.0,
                quantity="weight_rms",
                source="equal numbers before and after",
            )


def _loss_course(past: Sequence[_Look], look: _Look) -> Iterator[Finding]:
    """Yield a loss that grows, and a rate above the edge under which it does."""
    start, now = _ends(look.losses)
    if not past or not math.isfinite(now):
        return
    before = _ends(past[-1].losses)[1]
    # The steps in between were made by the curvature of the look before.
    rates = [each.above_stable() for each in (*past[-1:], look)]
    rate = max((rate for rate in rates if rate > 1), default=0.0)
    if rate and now > _RISEN * before > 0:
        yield _finding(
            "rate-too-large",
            f"The learning rate is {rate:.3g} times the stable one, and the loss rises",
            "Above the edge of stability a step overshoots along the sharpest "
            "direction. Lower the rate.",
            rate,
            1.0,
            quantity="rate_over_stable",
            source="Cohen et al. (2021); that the loss rises by half is ours",
        )
    if start > 0 and now > _GROWN * start:
        yield _finding(
            "loss-grows",
            f"The loss is {now / start:.3g} times that at the start",
            "The training diverges; most often the rate is too large.",
            now,
            _GROWN * start,
            source="the factor of ten is ours",
        )


def _collapse(past: Sequence[_Look], look: _Look) -> Iterator[Finding]:
    """Yield that all samples look alike in the last block, if they did not at first."""
    if not past:
        return
    ends = [body(e.survey, "forward_correlation")[-1:] for e in (past[0], look)]
    first, now = (1 - last[0][1].value if last else math.nan for last in ends)
    if first > _APART and now < _ALIKE:
        yield _finding(
            "signals-collapse",
            "All samples have come to look alike",
            "The last block before the head gives nearly the same answer to every "
            "sample, which at the start it did not, so that nothing can tell them "
            "apart.",
            now,
            _ALIKE,
            above=False,
            quantity="forward_correlation",
            source="relative to the start of the run; both levels are ours",
        )


_RULES = (_loss_course, _moves, _gradients, _collapse)


def _finding(
    rule: str, title: str, says: str, value: float, threshold: float = 0.0, **facts: Any
) -> Finding:
    numbers = {"value": value, "threshold": threshold}
    facts = {"quantity": "training_loss", "above": True, **numbers, **facts}
    return Finding(rule=rule, severity="sick", title=title, says=says, **facts)


def _ends(losses: Sequence[float]) -> tuple[float, float]:
    """Return the median loss at the start of a run and now; NaN without losses."""
    if not losses:
        return math.nan, math.nan
    size = max(1, min(_WINDOW, len(losses) // 4))
    return median(losses[:size]), median(losses[-size:])
