"""A forward pass as a list of affine steps, with all gates frozen.

Steps act on stacks of coefficients, with a polynomial's degree on the first axis. A
linear map treats all degrees alike, so a stack passes through it as one larger batch.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearMap(ABC):
    """The linear part of a call, as a map of its tracked operands."""

    shapes: tuple[torch.Size, ...]  # shape of each operand, without the axis of degrees

    @abstractmethod
    def push(self, stacks: Sequence[Tensor]) -> Tensor:
        """Return the output stack for operand stacks of equal lengths."""

    @abstractmethod
    def pull(self, adjoint: Tensor) -> tuple[Tensor, ...]:
        """Return the stack of adjoints of each operand."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Vectorised(LinearMap):
    """Any linear function of tensors, vectorised over the degrees."""

    function: Callable[..., Tensor]  # linear in all operands together

    def push(self, stacks: Sequence[Tensor]) -> Tensor:
        """Apply the function to every degree."""
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
    """A product with constants, element by element."""

    # A number, or a tensor whose product has the shape of the operand.
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
    """A convolution with constant filters; degrees join the samples."""

    weight: Tensor  # the filters
    settings: tuple[Any, ...]  # what ``aten.convolution`` takes after the bias

    def push(self, stacks: Sequence[Tensor]) -> Tensor:
        """Convolve all degrees of all samples at once."""
        (stack,) = stacks
        result = torch.ops.aten.convolution(
            stack.flatten(0, 1), self.weight, None, *self.settings
        )
        return result.unflatten(0, stack.shape[:2])

    def pull(self, adjoint: Tensor) -> tuple[Tensor, ...]:
        """Apply the transposed convolution, as torch does in backward passes."""
        cotangent = adjoint.flatten(0, 1)
        shape = (len(cotangent), *self.shapes[0][1:])
        result, _, _ = torch.ops.aten.convolution_backward(
            cotangent,
            cotangent.new_zeros(()).expand(shape),
            self.weight,
            None,
            *self.settings,
            [True, False, False],
        )
        return (result.unflatten(0, adjoint.shape[:2]),)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Summed(LinearMap):
    """A weighted sum of operands, broadcast; residual additions are of this kind."""

    weights: tuple[float, ...]  # of each operand
    shape: torch.Size  # of the sum

    def push(self, stacks: Sequence[Tensor]) -> Tensor:
        """Add up stacks of equal lengths."""
        return self.push_shifted(stacks, (0,) * len(stacks), self.weights)

    def push_shifted(
        self, stacks: Sequence[Tensor], shifts: Sequence[int], weights: Sequence[float]
    ) -> Tensor:
        """Add stacks, each shifted by some degrees and multiplied by a weight."""
        count = max(len(s) + k for s, k in zip(stacks, shifts, strict=True))
        total = stacks[0].new_zeros((count, *self.shape))
        for stack, shift, weight in zip(stacks, shifts, weights, strict=True):
            total[shift : shift + len(stack)].add_(self._aligned(stack), alpha=weight)
        return total

    def pull(self, adjoint: Tensor) -> tuple[Tensor, ...]:
        """Return the adjoint for each operand, summed over axes that were broadcast."""
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


# Calls that return their argument. Torch makes them only if something else holds the
# tensor, so they are not numbered.
SILENT = frozenset(("detach", "alias", "lift_fresh"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One call: a linear map of tracked tensors, and a constant."""

    # Number of the call in the pass, without calls that only return their argument.
    call: int
    op: str  # its name
    inputs: tuple[int, ...]  # numbers of the tensors that it takes
    positions: tuple[int, ...]  # place of each among the arguments of the call
    output: int  # number of the tensor that it makes
    map: LinearMap  # the linear part
    constant: Tensor | None  # what is added, such as a bias; None for nothing
    shape: torch.Size  # of the output
    # Squared norm of each operand in the true pass, of sums alone.
    squares: tuple[float, ...] = ()
    # Whether it is a layer of weights: a product or a convolution.
    weighted: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Tape:
    """A forward pass as affine steps, with gates frozen at the true activations."""

    steps: tuple[Step, ...]  # in order
    # Tensors that no step makes, by number: inputs and embeddings.
    sources: dict[int, Tensor]
    inputs: tuple[int, ...]  # numbers of those that are inputs of the model
    output: int  # number of the output
    value: Tensor  # the output of the true pass
    calls: int  # how many calls the pass made in all, by the same count
    # What was frozen though it is not piecewise linear.
    linearised: tuple[str, ...] = ()
    eps: float = 0.0  # rounding of the coarsest numbers in the pass

    def last_uses(self) -> dict[int, int]:
        """Return the index of the last step that reads each tensor."""
        last = {n: place for place, s in enumerate(self.steps) for n in s.inputs}
        last[self.output] = len(self.steps)
        return last

    def shape(self, number: int) -> torch.Size:
        """Return the shape of a tensor."""
        if number in self.sources:
            return self.sources[number].shape
        return next(step.shape for step in self.steps if step.output == number)

    def needed(self) -> "Tape":
        """Return the tape without the steps that the output does not depend on."""
        wanted, kept = {self.output}, []
        for step in reversed(self.steps):
            if step.output in wanted:
                wanted.update(step.inputs)
                kept.append(step)
        return replace(
            self,
            steps=tuple(reversed(kept)),
            sources={n: value for n, value in self.sources.items() if n in wanted},
            inputs=tuple(n for n in self.inputs if n in wanted),
        )
