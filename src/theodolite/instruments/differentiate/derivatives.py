"""Products with first and second derivatives, from one graph that is kept.

Everything is reverse mode, forward products too: a Jacobian-vector product is the
derivative of the pulled-back cotangent by that cotangent. So any operator with a second
derivative has all products, and train-mode batch norm is never in a nested transform.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from theodolite.core import MeasurementError

from .parts import Parts, filled
from .pullback import can_batch, pull_back, pull_back_many, pull_back_with_graph
from .replay import Replay

# Indices of variables along rows and along columns.
Sides = tuple[Sequence[int], Sequence[int]]


class Curve:
    """A scalar with the graph of its gradient, for products with its Hessian.

    Args:
        value: The scalar.
        variables: Leaves to differentiate by.
        constant: Whether it may depend on none of them.
    """

    def __init__(
        self, value: Tensor, variables: Sequence[Tensor], *, constant: bool = False
    ) -> None:
        self._variables, self.value = list(variables), value.detach()
        self._replay: Replay | None = None
        self._joined: Tensor | None = None
        self._batched = False
        if not value.requires_grad and constant:
            self._graph: Sequence[Tensor | None] = [None] * len(self._variables)
            return
        if not value.requires_grad:
            raise MeasurementError(
                "the loss does not depend on the parameters chosen: choose others, or "
                "look for detach() and no_grad() in the model"
            )
        self._graph = pull_back_with_graph([value], self._variables)

    @property
    def graph(self) -> Sequence[Tensor | None]:
        """The gradient with its graph; None for a variable without influence."""
        return self._graph

    @property
    def gradient(self) -> Parts:
        """The gradient, with zeros in place of None."""
        return filled(self._graph, self._variables)

    def product(self, tangents: Sequence[Tensor], only: Sides | None = None) -> Parts:
        """Multiply by the Hessian, or by the block of some variables.

        Args:
            tangents: One for each variable along the columns.
            only: Indices of the variables along rows and columns; all by default.
        """
        if only is None and self._replay is not None:
            return self._replay(tangents)
        every = range(len(self._variables))
        rows, columns = (every, every) if only is None else only
        variables = [self._variables[i] for i in rows]
        return pull_back([self._graph[i] for i in columns], variables, tangents)

    def products(self, tangents: Tensor) -> Tensor:
        """Multiply flat vectors (k, n), all at once if torch does so correctly."""
        if self._joined is None:
            self._joined = torch.cat([part.reshape(-1) for part in self.gradient])
            self._batched = self._joined.requires_grad and can_batch(
                self._joined, self._variables
            )
        if not self._joined.requires_grad:
            return torch.zeros_like(tangents)
        parts = pull_back_many(
            self._joined, self._variables, tangents, batched=self._batched
        )
        return torch.cat(
            [part.detach().reshape(len(tangents), -1) for part in parts], 1
        )

    @property
    def recorded(self) -> bool:
        """Whether products are replayed, so that no code of the model runs."""
        return self._replay is not None

    def record(self) -> None:
        """Record the product of all variables once, and replay it from then on.

        Raises:
            NotRecorded: If that is impossible; products then work as before.
        """
        self._replay = Replay(self.product, self._variables)


class Map:
    """A tensor with its graph, for products with its Jacobian in both directions."""

    def __init__(
        self, outputs: Tensor, variables: Sequence[Tensor], *, constant: bool = False
    ) -> None:
        if not outputs.requires_grad and not constant:
            raise MeasurementError(
                "the outputs do not depend on the parameters chosen: choose others, or "
                "look for detach() and no_grad() in the model"
            )
        self._variables, self.graph = list(variables), outputs
        self._pulled: Sequence[Tensor | None] | None = None
        self._cotangent = torch.zeros_like(outputs, requires_grad=True)
        self.outputs = outputs.detach()

    def prepare(self) -> "Map":
        """Build the graph that forward products need, and keep it."""
        if self._pulled is None and not self.graph.requires_grad:
            self._pulled = [None] * len(self._variables)
        if self._pulled is None:
            self._pulled = pull_back_with_graph(
                [self.graph], self._variables, [self._cotangent]
            )
        return self

    def push(self, tangents: Sequence[Tensor]) -> Tensor:
        """Return the change of the outputs along tangents, one for each variable."""
        pulled = self.prepare()._pulled or []
        return pull_back(pulled, [self._cotangent], tangents)[0]

    def pull(self, cotangent: Tensor) -> Parts:
        """Return the transpose's product with a cotangent, for each variable."""
        return pull_back([self.graph], self._variables, [cotangent])

    def through(
        self,
        tangents: Sequence[Tensor],
        between: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> Parts:
        """Push tangents forward, transform the result and pull it back.

        Args:
            tangents: One for each variable.
            between: Returns a cotangent for the outputs and their change.
        """
        if between is None:
            return self.pull(self.push(tangents))
        return self.pull(between(self.outputs, self.push(tangents)))
