"""A model with its batches and its loss."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from theodolite.instruments import Batch, Loss


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
