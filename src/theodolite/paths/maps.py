"""Linear maps on stacks of coefficients: pushed forward, and pulled back.

A stack has the degree of a polynomial on its first axis. A map acts on every degree
alike, so stacks go through it as one larger batch.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearMap(ABC):
    """What a call does to its tracked operands, constants aside.

    Attributes:
        shapes: Shape of each operand, without the axis of degrees.
    """

    shapes: tuple[torch.Size, ...]

    @abstractmethod
    def push(self, stacks: Sequence[Tensor]) -> Tensor:
        """Return the stack of the output, of stacks of equal lengths."""

    @abstractmethod
    def pull(self, adjoint: Tensor) -> tuple[Tensor, ...]:
        """Return the stack of adjoints of each operand."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Vectorised(LinearMap):
    """Any linear function of tensors, vectorised over the degrees.

    Attributes:
        function: Linear in all operands together.
    """

    function: Callable[..., Tensor]

    def push(self, stacks: Sequence[Tensor]) -> Tensor:
        """Vectorise the function."""
        return torch.vmap(self.function)(*stacks)

    def pull(self, adjoint: Tensor) -> tuple[Tensor, ...]:
        """Differentiate at zero, which for a linear function is anywhere."""
        with torch.inference_mode(False), torch.enable_grad():
            blank = [
                adjoint.new_zeros((len(adjoint), *shape)).requires_grad_()
                for shape in self.shapes
            ]
            output = self.push(blank)
            return torch.autograd.grad(output, blank, adjoint.expand_as(output))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Scaled(LinearMap):
    """A product with constants, element by element.

    Attributes:
        factor: A number, or a tensor whose product has the shape of the operand.
    """

    factor: Tensor | float

    def push(self, stacks: Sequence[Tensor]) -> Tensor:
        """Multiply."""
        (stack,) = stacks
        return stack * self.factor

    def pull(self, adjoint: Tensor) -> tuple[Tensor, ...]:
        """Multiply: a diagonal matrix is its own transpose."""
        return (adjoint * self.factor,)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Convolved(LinearMap):
    """A convolution with constant filters; degrees join the samples.

    Attributes:
        weight: The filters.
        settings: What ``aten.convolution`` takes after the bias.
    """

    weight: Tensor
    settings: tuple[Any, ...]

    def push(self, stacks: Sequence[Tensor]) -> Tensor:
        """Convolve all degrees of all samples at once."""
        (stack,) = stacks
        found = torch.ops.aten.convolution(
            stack.flatten(0, 1), self.weight, None, *self.settings
        )
        return found.unflatten(0, stack.shape[:2])

    def pull(self, adjoint: Tensor) -> tuple[Tensor, ...]:
        """Apply the transposed convolution, as torch does in backward passes."""
        cotangent = adjoint.flatten(0, 1)
        shape = (len(cotangent), *self.shapes[0][1:])
        found, _, _ = torch.ops.aten.convolution_backward(
            cotangent,
            cotangent.new_zeros(()).expand(shape),
            self.weight,
            None,
            *self.settings,
            [True, False, False],
        )
        return (found.unflatten(0, adjoint.shape[:2]),)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Summed(LinearMap):
    """A weighted sum of operands, broadcast; residual additions are of this kind.

    Attributes:
        weights: Of each operand.
        shape: Of the sum.
    """

    weights: tuple[float, ...]
    shape: torch.Size

    def push(self, stacks: Sequence[Tensor]) -> Tensor:
        """Add up stacks of equal lengths."""
        return self.push_shifted(stacks, (0,) * len(stacks), self.weights)

    def push_shifted(
        self, stacks: Sequence[Tensor], shifts: Sequence[int], weights: Sequence[float]
    ) -> Tensor:
        """Add up stacks, each raised by some degrees, with weights of their own."""
        count = max(len(s) + k for s, k in zip(stacks, shifts, strict=True))
        total = stacks[0].new_zeros((count, *self.shape))
        for stack, shift, weight in zip(stacks, shifts, weights, strict=True):
            total[shift : shift + len(stack)].add_(self._aligned(stack), alpha=weight)
        return total

    def pull(self, adjoint: Tensor) -> tuple[Tensor, ...]:
        """Hand the adjoint to every operand, summed where it was broadcast."""
        return tuple(
            _reduced(adjoint, shape) * weight
            for shape, weight in zip(self.shapes, self.weights, strict=True)
        )

    def _aligned(self, stack: Tensor) -> Tensor:
        missing = len(self.shape) - (stack.ndim - 1)
        return stack.reshape(len(stack), *(1,) * missing, *stack.shape[1:])


def _reduced(adjoint: Tensor, shape: torch.Size) -> Tensor:
    """Sum a stack over the axes along which an operand was broadcast."""
    extra = adjoint.ndim - 1 - len(shape)
    if extra:
        adjoint = adjoint.sum(tuple(range(1, 1 + extra)))
    axes = [
        axis + 1
        for axis, size in enumerate(shape)
        if size == 1 and adjoint.shape[axis + 1] != 1
    ]
    return adjoint.sum(axes, keepdim=True) if axes else adjoint
