"""What surgery does to a tensor on its way: scale, silence, add an identity, norm.

Edits are modules that their owner does not register: they hold no parameters, and run
as visits of their own, so that what they compute is not taken for the owner's code.
Parameters and norms that they use are registered with the owner and read by name.
"""

from typing import Any

import torch
from torch import Tensor, nn

Factor = float | str


class Edit(nn.Module):
    """Base of all edits: ``edit(owner, value, beside)`` returns the new value."""


class Scaled(Edit):
    """A factor: a number, or the owner's parameter of a name."""

    def __init__(self, by: Factor) -> None:
        super().__init__()
        self.by = by

    def forward(self, owner: nn.Module, value: Tensor, beside: Any) -> Tensor:
        """Multiply a value."""
        return value * factor_of(owner, self.by)


class Silenced(Edit):
    """Zeros in place of a value."""

    def forward(self, owner: nn.Module, value: Tensor, beside: Any) -> Tensor:
        """Forget a value."""
        return torch.zeros_like(value)


class WithIdentity(Edit):
    """A value plus an identity between shapes of another."""

    def __init__(self, bridge: nn.Module, by: Factor) -> None:
        super().__init__()
        # In a tuple, so that it is no submodule and carries no name.
        self.held = (bridge,)
        self.by = by

    def forward(self, owner: nn.Module, value: Tensor, beside: Tensor) -> Tensor:
        """Add the identity of another value."""
        straight = self.held[0](beside)
        if self.by != 1.0:
            straight = straight * factor_of(owner, self.by)
        return value + straight


class Normed(Edit):
    """The owner's submodule of a name, applied."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, owner: nn.Module, value: Tensor, beside: Any) -> Tensor:
        """Norm a value."""
        return getattr(owner, self.name)(value)


class Shifted(Edit):
    """The owner's parameter of a name, added."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, owner: nn.Module, value: Tensor, beside: Any) -> Tensor:
        """Shift a value."""
        return value + getattr(owner, self.name)


def factor_of(owner: nn.Module, by: Factor) -> Tensor | float:
    """Return a factor, be it a number or a parameter."""
    return getattr(owner, by) if isinstance(by, str) else by
