"""A product recorded once as a CUDA graph, and replayed for every vector.

Thousands of small kernels wait for Python and for their launches; a recorded product is
launched as a whole. All that it reads must stay at its address: the kept graph of the
gradient, and the tensors into which vectors are copied.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor

from .derivatives import Parts, all_close, flat

Product = Callable[[Sequence[Tensor]], Parts]


@contextmanager
def recordable(device: torch.device) -> Iterator[None]:
    """Run a block on a side stream, so that CUDA graphs can record its backward pass.

    Autograd runs each backward step on the stream of its forward step, and the default
    stream of a device cannot be recorded.
    """
    if device.type != "cuda":
        yield
        return
    usual, beside = torch.cuda.current_stream(device), _stream(device)
    beside.wait_stream(usual)
    with torch.cuda.stream(beside):
        yield
    usual.wait_stream(beside)


class Replay:
    """A recorded product.

    Args:
        product: Multiplies parts, by a graph built inside :func:`recordable`.
        like: Parts of the same shapes.

    Raises:
        NotRecorded: With the reason, in words that follow "not recorded: ".
    """

    def __init__(self, product: Product, like: Sequence[Tensor]) -> None:
        device = like[0].device
        if device.type != "cuda":
            raise NotRecorded(f"the parameters are on {device}, and CUDA is wanted")
        self._given = [torch.ones_like(part, requires_grad=False) for part in like]
        before = torch.cuda.get_rng_state(device)
        with recordable(device):
            product(self._given)  # libraries choose their kernels on the first call
            wanted = product(self._given)
        if not torch.equal(before, torch.cuda.get_rng_state(device)):
            raise NotRecorded("the way back draws random numbers")
        self._graph, self._shapes = torch.cuda.CUDAGraph(), [p.shape for p in like]
        try:
            with torch.cuda.graph(self._graph, stream=_stream(device)):
                self._found = flat(product(self._given))
        except torch.OutOfMemoryError as error:
            _settle(device)
            raise NotRecorded("the device has no memory left for it") from error
        except RuntimeError as error:
            _settle(device)
            reason = str(error).splitlines()[0]
            raise NotRecorded(
                f"CUDA says {reason!r}, be it for a step that reads numbers back, or "
                "for another graph of these parameters that is alive"
            ) from error
        if not all_close(self(self._given), wanted):
            raise NotRecorded("what was replayed differs from the product itself")

    def __call__(self, tangents: Sequence[Tensor]) -> Parts:
        """Multiply parts of the shapes that were recorded."""
        torch._foreach_copy_(  # pyright: ignore[reportPrivateImportUsage]
            self._given, list(tangents)
        )
        self._graph.replay()
        parts = self._found.clone().split([shape.numel() for shape in self._shapes])
        pairs = zip(parts, self._shapes, strict=True)
        return [part.view(shape) for part, shape in pairs]


class NotRecorded(Exception):
    """The reason why a product could not be recorded."""


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def _settle(device: torch.device) -> None:
    """Make a device's generator usable again after a failed recording."""
    index = torch.cuda.current_device() if device.index is None else device.index
    generator = torch.cuda.default_generators[index]
    generator.graphsafe_set_state(generator.clone_state())
