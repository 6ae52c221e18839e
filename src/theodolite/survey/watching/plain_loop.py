"""Watch a plain training loop from outside."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from theodolite.core import NormMode
from theodolite.instruments import Batches, Loss, as_loss, read_batches
from theodolite.training import Attached, Watcher

from .alerts import Alert
from .watched import Watch


def watch(
    model: nn.Module,
    optimizer: Optimizer,
    every: int = 100,
    *,
    loss: Loss | None = None,
    batches: Batches | None = None,
    measures: Sequence[str] | None = None,
    effort: str | float = "quick",
    ignore: Sequence[str] = (),
    on_alert: Callable[[Alert], object] | None = None,
    norm_mode: NormMode | str = "as_is",
    seed: int = 0,
) -> Watch:
    """Watch a plain training loop: the survey's numbers and rules along its steps.

    Every so many steps the survey's measures run before the update, and once at the
    end. Batch and loss are those of the loop, which are seen by themselves; gradients
    are those of the loss, before clipping. The loss is looked at in every step. What
    goes wrong is an :class:`Alert` at the step where it happens. An error is reported
    once and never raised. Model, optimiser and random states are the same as without
    the watch.

    Args:
        model: The model that is trained, as the loop calls it.
        optimizer: Its optimiser.
        every: Steps between two looks.
        loss: The loss on ``batches``; a model that returns its loss needs none.
        batches: Fixed batches to measure on in place of the step's; numbers of
            different steps are then easier to compare.
        measures: Names of the survey's measures; by default ``map``, ``signal``,
            ``units``, ``norms``, ``curvature`` and ``rates``.
        effort: How much one look computes; see :func:`theodolite.survey.survey`.
        ignore: Names of rules that raise no alert.
        on_alert: Called with every alert, which is logged as well.
        norm_mode: Statistics that normalisation layers use while measuring; by default
            every module keeps its mode, unless the model draws random numbers: then
            all except norm layers are measured in eval mode. Other modes set all norm
            layers, and put all other modules into eval mode.
        seed: Seed of all random numbers.

    Returns:
        A context; its ``course()`` returns what was measured so far.

    Raises:
        ConfigError: An argument is of the wrong kind.

    Example:
        >>> import torch
        >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> x, y = torch.randn(16, 2), torch.randn(16, 1)
        >>> with watch(model, optimizer, every=2) as watched:
        ...     for _ in range(4):
        ...         optimizer.zero_grad()
        ...         nn.functional.mse_loss(model(x), y).backward()
        ...         _ = optimizer.step()
        >>> watched.rows().where(quantity="loss").column("step"), watched.alerts
        ([0, 2, 4], ())
    """
    watched = Watch(
        every=every,
        measures=measures,
        effort=effort,
        norm_mode=norm_mode,
        seed=seed,
        ignore=ignore,
        on_alert=on_alert,
    )
    watcher = Watcher([watched.probe])
    watched.retired = lambda: watcher.retired
    facts = given(loss, batches)
    watched.attached = Attached(
        watcher, model, optimizer, on_step=watched.on_step, **facts
    )
    return watched


def given(loss: Loss | None, batches: Any) -> dict[str, Any]:
    """Return the batches and the loss that take the place of the step's."""
    if batches is None:
        return {"criterion": None if loss is None else as_loss(loss)}
    read = list(read_batches(batches() if callable(batches) else batches))
    # A model that returns its loss has no other name for it.
    own = loss or (lambda model, batch: model(**batch).loss)
    return {"batch": lambda: read, "criterion": as_loss(own)}
