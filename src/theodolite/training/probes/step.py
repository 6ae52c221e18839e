"""One step of a loop that somebody else wrote."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from theodolite.instruments import preserve
from theodolite.training.probes.probes import Snapshot


class WatchedStep:
    """A step; its loss and batch are had when they are needed.

    Args:
        fail: Told what could not be had, and why.
        model: The network.
        step: Updates made so far.
        loss: A number, a tensor, a function of model and batch, or None.
        batch: Anything, or a function that returns it.
        criterion: What probes see as ``criterion``.

    Attributes:
        costly: Whether the loss is still to be computed.
    """

    def __init__(
        self,
        fail: Callable[[str, Exception], None],
        model: nn.Module,
        step: int,
        loss: Any,
        batch: Any,
        criterion: Any,
    ) -> None:
        self.model, self.step, self.criterion = model, step, criterion
        self.costly = callable(loss)
        self._fail, self._given_loss, self._given_batch = fail, loss, batch
        self._loss: float | None = None
        self._has_batch = not callable(batch)

    @property
    def batch(self) -> Any:
        """The batch; None where it cannot be had."""
        if not self._has_batch:
            self._has_batch = True
            make: Any = self._given_batch
            self._given_batch = None
            try:
                self._given_batch = make()
            except Exception as error:
                self._fail("batch", error)
        return self._given_batch

    @property
    def loss(self) -> float:
        """The loss as a number; NaN where there is none."""
        if self._loss is None:
            self._loss, self.costly = math.nan, False
            try:
                self._loss = self._evaluate()
            except Exception as error:
                self._fail("loss", error)
        return self._loss

    def snapshot(self) -> Snapshot:
        """Return the network as probes see it."""
        return Snapshot(
            step=self.step,
            loss=self.loss,
            model=lambda: self.model,
            data=self.batch,
            criterion=self.criterion,
        )

    def _evaluate(self) -> float:
        value: Any = self._given_loss
        if value is None:
            return math.nan
        if callable(value):
            with preserve(self.model), torch.no_grad():
                value = value(self.model, self.batch)
        return float(value.detach() if hasattr(value, "detach") else value)
