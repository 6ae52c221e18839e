"""How many samples go through at once, for the memory that stacks may take."""

import torch

from theodolite.core import ConfigError, MeasurementError, free_memory
from theodolite.paths.propagate import Marks, degrees
from theodolite.paths.tape import Tape

# Stacks beside those that are counted: what a step makes on its way, such as the
# unfolded input of a convolution. Measured on networks of 3 by 3 convolutions.
_ASIDE = 8
# More at once was no faster on a CPU.
_ENOUGH = 2 * 2**30


def check_budget(graph_bytes: int | None) -> None:
    """Refuse what is no number of bytes."""
    whole = isinstance(graph_bytes, int) and not isinstance(graph_bytes, bool)
    if graph_bytes is not None and (not whole or graph_bytes < 1):
        raise ConfigError(
            f"graph_bytes is {graph_bytes!r}: pass a number of bytes from 1 up"
        )


def chunk_size(
    tape: Tape, marks: Marks, *, samples: int, graph_bytes: int | None
) -> int:
    """Return how many samples to take at once.

    Args:
        tape: Of one sample.
        marks: What makes a path longer.
        samples: How many there are.
        graph_bytes: Memory that stacks may take; part of what is free by default.
    """
    wanted = peak_bytes(tape, marks)
    free = _free(tape.value.device)
    enough = _ENOUGH if tape.value.device.type == "cpu" else free
    allowed = min(free // 2, enough) if graph_bytes is None else graph_bytes
    if wanted > allowed and (graph_bytes is not None or wanted > free):
        raise MeasurementError(
            f"the polynomials of one sample take about {wanted:,} bytes, allowed are "
            f"{allowed:,}: raise graph_bytes, or measure smaller inputs"
        )
    return max(1, min(samples, allowed // max(wanted, 1)))


def peak_bytes(tape: Tape, marks: Marks) -> int:
    """Forecast the memory that the stacks of a tape take at most."""
    count = degrees(tape, marks)
    last = tape.last_uses()
    size = {n: v.numel() * v.element_size() for n, v in tape.sources.items()}
    held, peak = sum(size.values()), 0
    for place, step in enumerate(tape.steps):
        bytes_each = torch.Size(step.shape).numel() * tape.value.element_size()
        size[step.output] = bytes_each * (count[step.output] + 1)
        held += size[step.output]
        peak = max(peak, held + _ASIDE * size[step.output])
        held -= sum(size[n] for n in set(step.inputs) if last[n] == place)
    return peak


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return free_memory()
