"""Gradient descent whose every step is certain not to raise the loss of its batch."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from theodolite.core import MeasurementError
from theodolite.instruments import Batch, Problem, measuring, preserve

from .enclosure import prepare
from .guaranteed import GuaranteedStep, guaranteed_step
from .search import certain_fall

# How often a step is halved if rounded weights do not lower the loss for certain.
_HALVINGS = 4


class CertifiedDescent(torch.optim.Optimizer):
    """Gradient descent that never raises the loss of the batch it steps on.

    Each step is the ``best_step`` of :func:`guaranteed_step`. The new weights are
    rounded to the type of the parameters, so the loss there is bounded once more; the
    parameters stay as they are where the loss is not certain to fall. That is
    the loss in exact arithmetic; the one that torch computes has its rounding. Buffers,
    such as running statistics, stay as they are.

    Args:
        problem: A model and a loss; its batches are not read.
        evaluations: How many stretches a step bounds, as in
            :func:`guaranteed_step`.

    Example:
        >>> from torch import nn
        >>> _ = torch.manual_seed(0)
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> batch = torch.randn(16, 4), torch.arange(16) % 3
        >>> problem = Problem(model, batch, loss=nn.CrossEntropyLoss())
        >>> optimizer = CertifiedDescent(problem)
        >>> falls = [optimizer.step(batch).decrease for _ in range(3)]
        >>> all(fall > 0 for fall in falls)
        True
    """

    def __init__(self, problem: Problem, *, evaluations: int = 5) -> None:
        self._problem, self._evaluations = problem, evaluations
        chosen = {id(one) for one in problem.parameters().values()}
        parameters: Iterable[Any] = [
            one for one in problem.model.parameters() if id(one) in chosen
        ]
        super().__init__(parameters, {})

    @measuring()
    def step(self, batch: Batch) -> GuaranteedStep:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Move the parameters, and return what is guaranteed of that.

        Args:
            batch: The batch.

        Returns:
            The guarantees. ``best_step`` and ``decrease`` are those of the weights as
            rounded: both 0 where none was found and the weights stayed.
        """
        problem = replace(self._problem, batches=[batch])
        guarantee = guaranteed_step(
            problem, evaluations=self._evaluations, measure=False
        )
        own = [one for group in self.param_groups for one in group["params"]]
        ready, step, fall = prepare(problem), guarantee.best_step, 0.0
        if len(own) != len(ready.anchors):
            raise MeasurementError(
                "the parameters of the model changed since the optimizer was made: "
                "make another"
            )
        with preserve(ready.model):
            gradient = ready.gradient() if step else []
            for _ in range(_HALVINGS if step else 0):
                values, change = [], []
                for one, at, by in zip(own, ready.anchors, gradient, strict=True):
                    values.append((at - step * by).to(one))
                    change.append(values[-1].double().cpu() - at)
                fall = certain_fall(ready, change)
                if fall > 0:
                    with torch.no_grad():
                        for one, value in zip(own, values, strict=True):
                            one.copy_(value)
                    break
                step /= 2
        return replace(guarantee, best_step=step if fall else 0.0, decrease=fall)
