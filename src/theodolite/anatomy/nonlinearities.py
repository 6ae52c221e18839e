"""Activations, and which of them are piecewise linear."""

from collections.abc import Iterable

from theodolite.anatomy.graph import Graph
from theodolite.anatomy.parts import Activation
from theodolite.anatomy.steps import Step
from theodolite.anatomy.vocabulary import MAX_POOLS


def activations_of(
    graph: Graph, by_hand: Iterable[Activation], taken: set[int]
) -> list[Activation]:
    """Find all activations, those written by hand among them.

    Args:
        graph: The signal.
        by_hand: Activations written by hand.
        taken: Calls that belong to those, or to norms.
    """
    found = [
        Activation(
            call=step.call,
            module=graph.recording.calls[step.call].module,
            kind=_kind(step),
            piecewise_linear=not step.curved,
        )
        for step in graph.steps.values()
        if step.call not in taken and _acts(graph, step)
    ]
    return sorted([*found, *by_hand], key=lambda activation: activation.call)


def _kind(step: Step) -> str:
    """Return the name by which people call an operator."""
    name = step.name.strip("_")
    for part in ("_with_indices", "_with_noise", "_functional", "_kernel", "_forward"):
        name = name.removesuffix(part)
    return name.removeprefix("safe_")


def _acts(graph: Graph, step: Step) -> bool:
    if step.word in ("activation", "statistic") or step.name in MAX_POOLS:
        return True
    made = graph.recording.calls[step.call].outputs
    numbers = bool(made) and graph.recording.values[made[0]].dtype.startswith("float")
    return step.word == "step" and numbers
