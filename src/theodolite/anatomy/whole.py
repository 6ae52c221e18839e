"""The anatomy of a network: all its parts together."""

from dataclasses import dataclass

from torch import nn

from theodolite.anatomy.graph import Graph
from theodolite.anatomy.parts import (
    Activation,
    Addition,
    Norm,
    Other,
    Unplaced,
)
from theodolite.anatomy.recorder import record
from theodolite.anatomy.recording import Recording
from theodolite.anatomy.spans import addition_of
from theodolite.anatomy.sums import sums_of
from theodolite.instruments import Batch


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """What a network is made of.

    Attributes:
        additions: Residual additions, in order of their calls.
        norms: Norms, in order.
        activations: Nonlinearities, in order.
        others: What joins tensors otherwise, named for what it is.
        unplaced: Sums of which skip and branch cannot be told apart.
        recording: The run that all indices and numbers refer to.
    """

    additions: tuple[Addition, ...]
    norms: tuple[Norm, ...]
    activations: tuple[Activation, ...]
    others: tuple[Other, ...]
    unplaced: tuple[Unplaced, ...]
    recording: Recording


def anatomy(model: nn.Module, batch: Batch) -> Anatomy:
    """Run a network once and say what it is made of; it is left as found.

    Args:
        model: Any module; it runs in the modes in which it is.
        batch: A tensor, a pair of inputs and targets, or a mapping of keyword
            arguments, as the instruments take them.

    Raises:
        MeasurementError: Nothing of the run could be seen.
    """
    graph = Graph(record(model, batch))
    sums = sums_of(graph)
    additions = [addition_of(graph, s) for s in sums if s.verdict == "residual"]
    return Anatomy(
        additions=tuple(sorted(additions, key=lambda addition: addition.call)),
        norms=(),
        activations=(),
        others=(),
        unplaced=(),
        recording=graph.recording,
    )
