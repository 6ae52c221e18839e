"""Probes that are ready to use: instruments on the batch and the loss of the step."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from theodolite.core import ConfigError, Reading, Row
from theodolite.instruments import classifier_norms, extreme_eigenvalues
from theodolite.instruments import collapse as collapse_of
from theodolite.instruments import trace as trace_of
from theodolite.training.probes.probes import Probe, Snapshot
from theodolite.training.probes.schedules import Every, When

_EVERY_STEP = Every(1)


def sharpness(
    when: When = _EVERY_STEP,
    *,
    k: int = 1,
    norm_mode: str = "batch",
    data: Any = None,
    loss: Any = None,
    name: str = "sharpness",
    **settings: Any,
) -> Probe:
    """Return a probe of the largest Hessian eigenvalue, with its certified error.

    Args:
        when: Its schedule.
        k: How many eigenvalues; more than one are told apart by ``rank``.
        norm_mode: Statistics that normalisation layers use.
        data: Batches to measure on; the batch of the step by default.
        loss: What is differentiated; the loss of the training by default.
        name: Of its rows.
        settings: Of ``instruments.extreme_eigenvalues``, such as ``tol``.

    Example:
        >>> from torch import nn
        >>> from theodolite.training import Descent, train
        >>> model, x = nn.Linear(2, 1).double(), torch.eye(2).double()
        >>> run = train(
        ...     model, (x, x[:, :1]), optimiser=Descent(lr=0.1), steps=20,
        ...     probes=[sharpness(Every(10))],
        ... )
        >>> run.probe_rows.column("step"), run.probe_rows[0]["quantity"]
        ([0, 10, 20], 'sharpness')
    """
    fixed = {"ends": "largest", "k": k, "tol": 1e-3, **settings}
    about = {"norm_mode": norm_mode, **fixed}
    return Probe(
        name, _OfLoss(extreme_eigenvalues, "eigenvalues", about, data, loss), when
    )


def trace(
    when: When = _EVERY_STEP,
    *,
    norm_mode: str = "batch",
    data: Any = None,
    loss: Any = None,
    name: str = "trace",
    **settings: Any,
) -> Probe:
    """Return a probe of the Hessian's trace, with its standard error.

    Args:
        when: Its schedule.
        norm_mode: Statistics that normalisation layers use.
        data: Batches to measure on; the batch of the step by default.
        loss: What is differentiated; the loss of the training by default.
        name: Of its rows.
        settings: Of ``instruments.trace``, such as ``max_matvecs``.
    """
    about = {"norm_mode": norm_mode, **settings}
    return Probe(name, _OfLoss(trace_of, "trace", about, data, loss), when)


def collapse(
    when: When = _EVERY_STEP,
    *,
    norm_mode: str = "eval",
    data: Any = None,
    name: str = "collapse",
    **settings: Any,
) -> Probe:
    """Return a probe of neural collapse, NC1 to NC5: every number of its reading.

    Args:
        when: Its schedule.
        norm_mode: Statistics that normalisation layers use.
        data: Batches with labels; the batch of the step by default.
        name: Before the name of each number.
        settings: Of ``instruments.collapse``, such as ``layer``.
    """
    about = {"norm_mode": norm_mode, **settings}
    return Probe(name, _OfOutputs(collapse_of, about, data), when)


def margins(
    when: When = _EVERY_STEP,
    *,
    norm_mode: str = "eval",
    data: Any = None,
    name: str = "margins",
    **settings: Any,
) -> Probe:
    r"""Return a probe of margins and of the product of norms $\rho$ of a classifier.

    Args:
        when: Its schedule.
        norm_mode: Statistics that normalisation layers use.
        data: Batches with labels; the batch of the step by default.
        name: Before the name of each number.
        settings: Of ``instruments.classifier_norms``.
    """
    about = {"norm_mode": norm_mode, **settings}
    return Probe(name, _OfOutputs(classifier_norms, about, data), when)


def norms(when: When = _EVERY_STEP, *, name: str = "norms") -> Probe:
    """Return a probe of the norm of every parameter and of all together."""
    return Probe(name, weight_norms, when)


def gradient_norm(when: When = _EVERY_STEP, *, name: str = "gradient_norm") -> Probe:
    """Return a probe of the norm of the gradient of the step."""
    return Probe(name, gradient_size, when)


def weight_norms(at: Snapshot) -> dict[str, float]:
    """Return the norm of every parameter, and ``all`` of them as one vector."""
    sizes = {n: float(p.detach().double().norm()) for n, p in _parameters(at)}
    return {**sizes, "all": sum(size**2 for size in sizes.values()) ** 0.5}


def gradient_size(at: Snapshot) -> float:
    """Return the norm of what the backward pass of the step has left."""
    grads = [p.grad for _, p in _parameters(at) if p.grad is not None]
    if not grads:
        raise ConfigError(
            f"no parameter has a gradient at step {at.step}: call the watcher after "
            "backward() and before the optimiser's step"
        )
    return float(sum(grad.detach().double().square().sum() for grad in grads) ** 0.5)


def _parameters(at: Snapshot) -> Iterable[tuple[str, torch.nn.Parameter]]:
    return at.model.named_parameters()


@dataclass(frozen=True)
class _OfLoss:
    """One quantity of an instrument of the loss, under the probe's own name."""

    instrument: Callable[..., Reading]
    quantity: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Any = None
    loss: Any = None

    def __call__(self, at: Snapshot) -> list[Row]:
        loss = at.criterion if self.loss is None else self.loss
        if loss is None:
            raise ConfigError(
                "the training says no loss that could be differentiated: pass loss=…, "
                "such as loss=nn.CrossEntropyLoss(), or criterion=… to what watches"
            )
        reading = self.instrument(
            at.model, _batches(at, self.data), loss=loss, **self.settings
        )
        kept = [row for row in reading.rows() if row["quantity"] == self.quantity]
        # One number needs no name but the probe's, and its rank says nothing.
        single = [k for k in ("rank",) if len(kept) == 1]
        return [
            {k: v for k, v in row.items() if k not in single} | {"quantity": ""}
            for row in kept
        ]


@dataclass(frozen=True)
class _OfOutputs:
    """All numbers of an instrument of outputs; lists and tables are left out."""

    instrument: Callable[..., Reading]
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Any = None

    def __call__(self, at: Snapshot) -> list[Row]:
        reading = self.instrument(at.model, _batches(at, self.data), **self.settings)
        return [row for row in reading.rows() if not reading.dims[row["quantity"]]]


def _batches(at: Snapshot, given: Any) -> Any:
    batches = at.data if given is None else given
    if batches is None:
        raise ConfigError(
            "the training shows no batch: pass data=… to the probe, or batch=… to what "
            "watches"
        )
    return batches
