"""Numbers a channel, where channels are on axis 1 as batch norms have them."""

from torch import Tensor


def wide(channel: Tensor, x: Tensor) -> Tensor:
    """Return one number a channel in a shape that goes with a tensor's."""
    return channel.reshape([-1 if axis == 1 else 1 for axis in range(x.ndim)])


def other_axes(x: Tensor) -> list[int]:
    """Return all axes of a tensor but that of its channels."""
    return [axis for axis in range(x.ndim) if axis != 1]
