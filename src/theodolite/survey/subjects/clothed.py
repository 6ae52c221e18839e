"""A model with all that a survey needs of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from theodolite.instruments import Batch, Loss


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A model, data to run it on, and what is minimised.

    Attributes:
        model: The model; of a compiled one, the module that was compiled.
        batches: Batches, each a pair (inputs, targets) or keyword arguments.
        loss: What is minimised.
        title: What to call it.
        inputs: Where the inputs, the labels and the loss come from, in a sentence;
            begins with "made up" if no data was given.
        labels_known: Whether targets are anybody's, rather than made up.
        code: Lines of Python that make ``model``.
    """

    model: nn.Module
    batches: Sequence[Batch]
    loss: Loss
    title: str
    inputs: str
    labels_known: bool
    code: str = ""
