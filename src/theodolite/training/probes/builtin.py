"""Built-in probes: instruments on the batch and the loss of the step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from theodolite.core import ConfigError, Reading, Row
from theodolite.instruments import Problem, classifier_norms, extreme_eigenvalues
from theodolite.instruments import collapse as collapse_of
from theodolite.instruments import trace as trace_of

from .probe import Probe, Snapshot
from .schedules import Every, Schedule

_EVERY_STEP = Every(1)


def sharpness(
    when: Schedule = _EVERY_STEP,
    *,
    k: int = 1,
    norm_mode: str = "as_is",
    data: Any = None,
    loss: Any = None,
    name: str = "sharpness",
    **settings: Any,
) -> Probe:
    """Return a probe of the largest Hessian eigenvalue, with its certified error.

    Args:
        when: Its schedule.
        k: How many eigenvalues; more than one are labelled by ``rank``.
        norm_mode: Statistics that normalisation layers use; by default every module
            keeps its mode, so that frozen norms stay frozen. Dropout in train mode is
            refused: ``eval`` switches it off.
        data: Batches to measure on; the batch of the step by default.
        loss: What is differentiated; the loss of the training by default.
        name: Name of its rows.
        settings: Of ``instruments.extreme_eigenvalues``, such as ``tol``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from theodolite.training import Descent, train
        >>> model, x = nn.Linear(2, 1).double(), torch.eye(2).double()
        >>> run = train(
        ...     model, (x, x[:, :1]), optimizer=Descent(lr=0.1), steps=20,
        ...     probes=[sharpness(Every(10))],
        ... )
        >>> run.probe_rows.column("step"), run.probe_rows[0]["quantity"]
        ([0, 10, 20], 'sharpness')
    """
    fixed = {"norm_mode": norm_mode, "ends": "largest", "k": k, "tol": 1e-3, **settings}
    measure = _LossInstrument(extreme_eigenvalues, "eigenvalues", fixed, data, loss)
    return Probe(name, measure, when)


def trace(
    when: Schedule = _EVERY_STEP,
    *,
    norm_mode: str = "as_is",
    data: Any = None,
    loss: Any = None,
    name: str = "trace",
    **settings: Any,
) -> Probe:
    """Return a probe of the Hessian's trace, with its standard error.

    Takes the arguments of :func:`sharpness`, without ``k``; ``settings`` are those of
    ``instruments.trace``, such as ``max_matvecs``.
    """
    fixed = {"norm_mode": norm_mode, **settings}
    return Probe(name, _LossInstrument(trace_of, "trace", fixed, data, loss), when)


def collapse(
    when: Schedule = _EVERY_STEP,
    *,
    norm_mode: str = "as_is",
    data: Any = None,
    name: str = "collapse",
    **settings: Any,
) -> Probe:
    """Return a probe of neural collapse, NC1 to NC5: every number of its reading.

    Takes the arguments of :func:`sharpness`, without ``k`` and ``loss``; ``data`` are
    batches with labels, ``name`` stands before the name of each number, ``settings``
    are those of ``instruments.collapse``, such as ``layer``.
    """
    fixed = {"norm_mode": norm_mode, **settings}
    return Probe(name, _OutputInstrument(collapse_of, fixed, data), when)


def margins(
    when: Schedule = _EVERY_STEP,
    *,
    norm_mode: str = "as_is",
    data: Any = None,
    name: str = "margins",
    **settings: Any,
) -> Probe:
    r"""Return a probe of margins and of the product of norms $\rho$ of a classifier.

    Takes the arguments of :func:`collapse`; ``settings`` are those of
    ``instruments.classifier_norms``.
    """
    fixed = {"norm_mode": norm_mode, **settings}
    return Probe(name, _OutputInstrument(classifier_norms, fixed, data), when)


def norms(when: Schedule = _EVERY_STEP, *, name: str = "norms") -> Probe:
    """Return a probe of the norm of every parameter and of all together."""
    return Probe(name, weight_norms, when)


def gradient_norm(
    when: Schedule = _EVERY_STEP, *, name: str = "gradient_norm"
) -> Probe:
    """Return a probe of the norm of the gradient of the step."""
    return Probe(name, gradient_size, when)


def weight_norms(at: Snapshot) -> dict[str, float]:
    """Return the norm of every parameter, and ``all``, the norm of all together."""
    named = at.model.named_parameters()
    sizes = {n: float(p.detach().double().norm()) for n, p in named}
    return {**sizes, "all": sum(size**2 for size in sizes.values()) ** 0.5}


def gradient_size(at: Snapshot) -> float:
    """Return the norm of the gradient that the backward pass computed."""
    grads = [p.grad for p in at.model.parameters() if p.grad is not None]
    if not grads:
        raise ConfigError(
            f"no parameter has a gradient at step {at.step}: call the watcher after "
            "backward() and before the optimiser's step"
        )
    return float(sum(grad.detach().double().square().sum() for grad in grads) ** 0.5)


@dataclass(frozen=True)
class _LossInstrument:
    """Measures one quantity of the loss, and names it after the probe."""

    instrument: Callable[..., Reading]
    quantity: str
    settings: Mapping[str, Any]
    data: Any
    loss: Any

    def __call__(self, at: Snapshot) -> list[Row]:
        problem = _problem(at, self.data, self.loss)
        if problem.loss is None:
            raise ConfigError(
                "the training says no loss that could be differentiated: pass loss=…, "
                "such as loss=nn.CrossEntropyLoss(), or criterion=… to what watches"
            )
        reading = self.instrument(problem, **self.settings)
        rows = [row for row in reading.rows() if row["quantity"] == self.quantity]
        # A single number needs no rank.
        dropped = ("rank",) if len(rows) == 1 else ()
        return [
            {k: v for k, v in row.items() if k not in dropped} | {"quantity": ""}
            for row in rows
        ]


@dataclass(frozen=True)
class _OutputInstrument:
    """Measures all single numbers of an instrument; lists and tables are left out."""

    instrument: Callable[..., Reading]
    settings: Mapping[str, Any]
    data: Any

    def __call__(self, at: Snapshot) -> list[Row]:
        problem = _problem(at, self.data)
        reading = self.instrument(problem.model, problem.batches, **self.settings)
        return [row for row in reading.rows() if not reading.dims[row["quantity"]]]


def _problem(at: Snapshot, data: Any, loss: Any = None) -> Problem:
    """Return the problem of the step, with other data and another loss if given."""
    given = {"batches": data, "loss": loss}
    changed = {name: value for name, value in given.items() if value is not None}
    problem = replace(at.problem, **changed) if changed else at.problem
    if problem.batches is None:
        raise ConfigError(
            "the training shows no batch: pass data=… to the probe, or batch=… to what "
            "watches"
        )
    return problem
