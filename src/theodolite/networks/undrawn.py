"""Layers whose weights nobody has drawn yet."""

from typing import Any

from torch import nn


class _Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """Leave the weights as memory has them."""


class _Conv2d(nn.Conv2d):
    def reset_parameters(self) -> None:
        """Leave the weights as memory has them."""


def linear(inputs: int, outputs: int, **how: Any) -> nn.Linear:
    """Make a linear layer for a builder that draws all of its weights.

    As ``torch.nn.utils.skip_init`` does, which makes each layer twice and takes ten
    times as long; torch's generator stays untouched.

    Args:
        inputs: Features that come in.
        outputs: Features that go out.
        **how: As for :class:`torch.nn.Linear`.
    """
    made: Any = _Linear(inputs, outputs, device="cpu", **how)
    made.__class__ = nn.Linear
    return made


def convolution(into: int, out: int, kernel: int, **how: Any) -> nn.Conv2d:
    """Make a convolution for a builder that draws all of its weights.

    Args:
        into: Channels that come in.
        out: Channels that go out.
        kernel: Side of the filters.
        **how: As for :class:`torch.nn.Conv2d`.
    """
    made: Any = _Conv2d(into, out, kernel, device="cpu", **how)
    made.__class__ = nn.Conv2d
    return made
