"""A model with its batches and its loss."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from theodolite.core import NormMode
from theodolite.instruments import Batch, Loss, Problem


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A model, data to run it on, and its loss.

    Attributes:
        model: The model; if it is compiled, the original module.
        batches: Batches, each a pair (inputs, targets) or keyword arguments.
        loss: The loss.
        title: Name for print and pages.
        inputs: One sentence on where inputs, labels and loss come from;
            begins with "made up" if no data was given.
        labels_known: Whether targets are real, not made up.
        code: Lines of Python that make ``model``.
    """

    model: nn.Module
    batches: Sequence[Batch]
    loss: Loss
    title: str
    inputs: str
    labels_known: bool
    code: str = ""

    def problem(self, *, norm_mode: NormMode | str, seed: int) -> Problem:
        """Return model, data and loss as instruments take them."""
        return Problem(
            self.model, self.batches, loss=self.loss, norm_mode=norm_mode, seed=seed
        )
