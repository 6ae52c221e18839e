"""What lies in a bed: a network, its batches, its loss and its optimiser."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

BatchList = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A network as it is about to be trained.

    Attributes:
        model: The network.
        batches: What it learns from, as the instruments take batches.
        loss: Criterion of outputs and targets.
        optimizer: What would train it, None where that does not matter.
    """

    model: nn.Module
    batches: BatchList
    loss: nn.Module = field(default_factory=nn.CrossEntropyLoss)
    optimizer: torch.optim.Optimizer | None = None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A sick network and its healthy twin, which differ in one thing.

    Attributes:
        name: Its name.
        illness: What is wrong, in one line.
        cure: How the twin differs.
        sick: Makes the sick one, the same at every call.
        healthy: Makes the twin.
        expected: Rules that must fire on the sick one and be silent on the twin.
        also: Rules that are true of the sick one as well.
        notes: Rules of no more than a note that are true of the twin, too.
    """

    name: str
    illness: str
    cure: str
    sick: Callable[[], Case]
    healthy: Callable[[], Case]
    expected: tuple[str, ...]
    also: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Standard:
    """A network of a common kind, as it is usually started.

    Attributes:
        name: Its name.
        make: Makes it, the same at every call.
        notes: Rules of no more than a note that are true of it.
    """

    name: str
    make: Callable[[], Case]
    notes: tuple[str, ...] = ()
