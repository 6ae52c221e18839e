"""Products with first and second derivatives, from one graph that is kept.

Everything is reverse mode, forward products too: a Jacobian-vector product is the
derivative of the pulled-back cotangent by that cotangent. So any operator with a second
derivative has all products, and train-mode batch norm is never in a nested transform.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np
import torch
from torch import Tensor

from theodolite.core import Exclusive, MeasurementError, stream

from .twice import explained, instrument_backward, refuse_error_nodes

Parts = list[Tensor]


# Name and shape of each parameter, in order.
Layout = tuple[tuple[str, tuple[int, ...]], ...]


def sizes_of(layout: Layout) -> list[int]:
    """Return how many numbers each parameter has."""
    return [prod(shape) for _, shape in layout]


def split(layout: Layout, vector: Tensor) -> dict[str, Tensor]:
    """Return a flat vector (n,), or columns (n, k), by names in the parameters' shapes.

    Columns are along the last axis of each part.
    """
    sizes = sizes_of(layout)
    if vector.ndim not in (1, 2) or len(vector) != sum(sizes):
        raise MeasurementError(
            f"a vector of shape {tuple(vector.shape)} came, wanted is "
            f"({sum(sizes)},), one number per parameter"
        )
    with torch._C.DisableTorchFunction():  # modes would be called for every part
        return {
            name: part.reshape((*shape, *vector.shape[1:]))
            for (name, shape), part in zip(layout, vector.split(sizes), strict=True)
        }


def add(total: Parts, parts: Sequence[Tensor]) -> None:
    """Add in place, part by part."""
    torch._foreach_add_(  # pyright: ignore[reportPrivateImportUsage]
        total, list(parts)
    )


def added(total: Parts, parts: Sequence[Tensor], *, alone: bool) -> Parts:
    """Return a total, empty at first, with parts added; the parts stay unchanged.

    Args:
        total: The sum so far.
        parts: The next term.
        alone: Whether no other term comes, so that the first needs no copy.
    """
    if not total:
        return list(parts) if alone else [part.clone() for part in parts]
    add(total, parts)
    return total


def zeros(like: Sequence[Tensor]) -> Parts:
    """Return parts of zeros in the shapes given."""
    return [torch.zeros_like(part, requires_grad=False) for part in like]


def filled(parts: Sequence[Tensor | None], variables: Sequence[Tensor]) -> Parts:
    """Return parts with zeros for None, which autograd gives for unused variables."""
    return [
        torch.zeros_like(variable, requires_grad=False) if part is None else part
        for part, variable in zip(parts, variables, strict=True)
    ]


def flat(parts: Sequence[Tensor]) -> Tensor:
    """Join parts into one vector."""
    with torch._C.DisableTorchFunction():  # modes would be called for every part
        return torch.cat([part.detach().reshape(-1) for part in parts])


# Roundings of the largest numbers that cancelling sums may leave; up to 5 were
# seen, for biases before batch norms.
_LEFT_OVER = 30


def pull_back(
    outputs: Sequence[Tensor | None],
    variables: Sequence[Tensor],
    cotangents: Sequence[Tensor],
) -> Parts:
    """Return pulled-back cotangents, with zeros for variables without influence.

    The graph is kept.
    """
    pairs = [
        (output, cotangent)
        for output, cotangent in zip(outputs, cotangents, strict=True)
        if output is not None and output.requires_grad
    ]
    if not pairs:
        return zeros(variables)
    try:
        # No graph is made, so no operator needs to be replaced.
        with torch._C.DisableTorchFunction():
            parts = torch.autograd.grad(
                [output for output, _ in pairs],
                list(variables),
                [cotangent for _, cotangent in pairs],
                retain_graph=True,
                allow_unused=True,
            )
    except RuntimeError as error:
        raise explained(error) from error
    # The result may be one of the cotangents itself.
    whole = filled(parts, variables)
    return [part.detach() if part.requires_grad else part for part in whole]


def pull_back_with_graph(
    outputs: Sequence[Tensor],
    variables: Sequence[Tensor],
    cotangents: Sequence[Tensor] | None = None,
    *,
    keep: bool = True,
) -> Sequence[Tensor | None]:
    """Pull cotangents back as an instrument; None for variables without influence.

    Args:
        outputs: Tensors to differentiate.
        variables: Tensors to differentiate by.
        cotangents: One for each output; 1 for a scalar by default.
        keep: Whether the result has a graph, for derivatives of it.
    """
    try:
        with instrument_backward():
            gradient = torch.autograd.grad(
                outputs, variables, cotangents, create_graph=keep, allow_unused=True
            )
    except RuntimeError as error:
        raise explained(error) from error
    if keep:
        refuse_error_nodes(gradient, outputs, variables)
    return gradient


def pull_back_many(
    outputs: Tensor,
    inputs: Sequence[Tensor],
    cotangents: Tensor,
    *,
    batched: bool,
    by_rules: bool = False,
) -> Parts:
    """Pull a block of cotangents (k, ...) back, all at once or one by one.

    Args:
        outputs: Tensors to differentiate.
        inputs: Tensors to differentiate by.
        cotangents: One per row.
        batched: Whether all go at once.
        by_rules: Whether the graph has operators that only ``vmap`` batches.
    """
    if not batched:
        rows = [pull_back([outputs], inputs, [given]) for given in cotangents]
        return [torch.stack(parts) for parts in zip(*rows, strict=True)]
    with Exclusive(), warnings.catch_warnings():  # all threads share its filters
        # Operators without a batching rule fall back to a loop, with a warning.
        warnings.filterwarnings("ignore", message="There is a performance drop")
        parts = _pulled(outputs, inputs, cotangents, by_rules)
    return [
        tensor.new_zeros(len(cotangents), *tensor.shape) if part is None else part
        for part, tensor in zip(parts, inputs, strict=True)
    ]


def _pulled(
    outputs: Tensor, inputs: Sequence[Tensor], cotangents: Tensor, by_rules: bool
) -> Sequence[Tensor | None]:
    """Pull a block back by the faster of torch's two ways to batch.

    ``is_grads_batched`` runs convolutions one by one. ``vmap`` has rules for them, more
    than twice as fast in float32, but slower in float64 on a CPU.
    """
    grad = torch.autograd.grad
    pull = partial(grad, outputs, inputs, retain_graph=True, allow_unused=True)
    plain = outputs.dtype is torch.float64 and outputs.device.type == "cpu"
    if plain and not by_rules:
        return pull(grad_outputs=cotangents, is_grads_batched=True)

    def pull_one(cotangent: Tensor) -> dict[int, Tensor]:
        parts = enumerate(pull(grad_outputs=cotangent))
        return {place: part for place, part in parts if part is not None}

    by_place = torch.func.vmap(pull_one)(cotangents)
    return [by_place.get(place) for place in range(len(inputs))]


def can_batch(
    outputs: Tensor, inputs: Sequence[Tensor], *, seed: int = 0, by_rules: bool = False
) -> bool:
    """Return whether torch can batch the pull-back of this graph correctly.

    Two random cotangents are pulled back together and separately: a missing batching
    rule raises, a wrong one gives a different result.
    """
    noise = stream(seed, "batching").normal(size=(2, *outputs.shape))
    cotangents = torch.from_numpy(noise).to(outputs)
    try:
        together = pull_back_many(
            outputs, inputs, cotangents, batched=True, by_rules=by_rules
        )
    except RuntimeError:
        return False
    return all_close(
        together, pull_back_many(outputs, inputs, cotangents, batched=False)
    )


def all_close(result: Parts, wanted: Parts) -> bool:
    """Return whether all parts of two results agree within rounding of their type.

    Some parts are only the remainder of cancelling sums, such as those of biases before
    batch norms, so each part is allowed the rounding of the largest part.
    """
    largest = max(map(_size, wanted), default=0.0)
    return all(
        close(*pair, beside=largest) for pair in zip(result, wanted, strict=True)
    )


def close(result: Tensor, wanted: Tensor, *, beside: float = 0.0) -> bool:
    """Return whether two results agree within rounding of their type.

    Args:
        result: One of them.
        wanted: The other; its largest number sets the scale.
        beside: Size of other numbers, whose rounding both may contain.
    """
    eps = torch.finfo(wanted.dtype).eps
    limit = eps * max(1e3 * _size(wanted), _LEFT_OVER * beside, 1e-300)
    gap = _size(result - wanted)
    return bool(np.isfinite(gap)) and gap <= limit


def _size(tensor: Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0


# Indices of variables along rows and along columns.
Sides = tuple[Sequence[int], Sequence[int]]


class Curve:
    """A scalar with the graph of its gradient, for products with its Hessian.

    Args:
        value: The scalar.
        variables: Leaves to differentiate by.
        constant: Whether it may depend on none of them.

    Attributes:
        value: The scalar without its graph.
        replay: Computes products of all variables, where one was recorded; no code of
            the model runs then.
    """

    def __init__(
        self, value: Tensor, variables: Sequence[Tensor], *, constant: bool = False
    ) -> None:
        self._variables, self.value = list(variables), value.detach()
        self.replay: Callable[[Sequence[Tensor]], Parts] | None = None
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
        if only is None and self.replay is not None:
            return self.replay(tangents)
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
