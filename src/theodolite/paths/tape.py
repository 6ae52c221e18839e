"""A forward pass as a list of affine steps, with every gate frozen as it was."""

from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.paths.maps import LinearMap

# Calls that return what they get; whether torch makes them depends on who else holds
# the tensor, so they are not numbered.
SILENT = frozenset(("detach", "alias", "lift_fresh"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One call: a linear map of tracked tensors, and a constant.

    Attributes:
        call: Number of the call among all of the pass, those left out that do nothing.
        op: Its name.
        inputs: Numbers of the tensors that it takes.
        positions: Place of each among the arguments of the call.
        output: Number of the tensor that it makes.
        map: The linear part.
        constant: What is added, such as a bias; None for nothing.
        shape: Of the output.
        squares: Squared norm of each operand in the true pass, of sums alone.
        weighted: Whether it is a layer of weights: a product or a convolution.
    """

    call: int
    op: str
    inputs: tuple[int, ...]
    positions: tuple[int, ...]
    output: int
    map: LinearMap
    constant: Tensor | None
    shape: torch.Size
    squares: tuple[float, ...] = ()
    weighted: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Tape:
    """A pass of a network as it acts near the activations that it really had.

    Attributes:
        steps: In order.
        sources: Tensors that no step makes, by number: inputs and embeddings.
        inputs: Numbers of those that are inputs of the model.
        output: Number of the output.
        value: The output of the true pass.
        calls: How many calls the pass made in all, by the same count.
        linearised: What was frozen though it is not piecewise linear.
        eps: Rounding of the coarsest numbers in the pass.
    """

    steps: tuple[Step, ...]
    sources: dict[int, Tensor]
    inputs: tuple[int, ...]
    output: int
    value: Tensor
    calls: int
    linearised: tuple[str, ...] = ()
    eps: float = 0.0

    def last_uses(self) -> dict[int, int]:
        """Return the place of the last step that reads each tensor."""
        found = {n: place for place, s in enumerate(self.steps) for n in s.inputs}
        found[self.output] = len(self.steps)
        return found

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
        return Tape(
            steps=tuple(reversed(kept)),
            sources={n: value for n, value in self.sources.items() if n in wanted},
            inputs=tuple(n for n in self.inputs if n in wanted),
            output=self.output,
            value=self.value,
            calls=self.calls,
            linearised=self.linearised,
            eps=self.eps,
        )
