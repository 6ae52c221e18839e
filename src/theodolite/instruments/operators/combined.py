"""The base of operators that are made of others, and the transpose."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from theodolite.core import NormMode

from ..differentiate.derivatives import Layout
from .matrix_operator import Identity, MatrixOperator
from .operator import Operator


def is_given(operator: Operator) -> bool:
    """Return whether an operator is a matrix that no model computes."""
    return isinstance(operator, MatrixOperator | Identity)


class Combined(Operator):
    """The base of operators that are made of others.

    Attributes:
        norm_mode: That of the first operand with a model; ``title`` has all of them
            where they differ.
        partition: Samples of each batch, for one operand after the other where they
            differ.
        team: Processes that hold batches.
        seed: Seed of the first operand.
        randomness: ``fixed`` if that of any operand is.
        forecast_bytes: Forecast memory of the graphs of all operands.
    """

    def __init__(self, parts: Sequence[Operator]) -> None:
        self.parts = tuple(parts)
        kinds = [part.torch_dtype for part in parts]
        self.torch_dtype, self.device = (
            reduce(torch.promote_types, kinds),
            parts[0].device,
        )
        self.inexact = any(part.inexact for part in parts)
        self.cancels = any(part.cancels for part in parts)
        self._leaves = tuple({id(leaf): leaf for leaf in _leaves(self)}.values())
        self._measured = [leaf for leaf in self._leaves if not is_given(leaf)]
        held = self._held
        self.norm_mode = NormMode((*held("norm_mode"), NormMode.EVAL)[0])
        cut = list(dict.fromkeys(held("partition")))
        self.partition = tuple(samples for one in cut for samples in one)
        self.team = (*held("team"), None)[0]
        self.seed = (*held("seed"), 0)[0]
        drawn = "fixed" in held("randomness")
        self.randomness = "fixed" if drawn else "refuse"
        self.forecast_bytes = sum(held("forecast_bytes")) or None

    def _held(self, name: str) -> list[Any]:
        """Return an attribute of those operands that have it."""
        found = [getattr(leaf, name, None) for leaf in self._measured]
        return [one for one in found if one is not None]

    def _settle(self) -> None:
        """Find out whether the operator is symmetric, and name it; call it last."""
        self.symmetric = self.key() == self.key(flipped=True)
        self.title = self.written(modes=len(set(self._held("norm_mode"))) > 1)

    @property
    def changes(self) -> tuple[Any, ...]:
        """How often products of each operand met a model that had changed."""
        return tuple(leaf.changes for leaf in self._measured)

    @property
    def norm_layers(self) -> dict[str, tuple[str, ...]]:
        """Names of norm layers by their mode, under ``as_is``."""
        return (*self._held("norm_layers"), {})[0]

    @property
    def graphs_held(self) -> int:
        """Number of graphs that are kept, 0 if any operand keeps none."""
        counts = [getattr(leaf, "graphs_held", 0) for leaf in self._measured]
        return 0 if 0 in counts else sum(counts)

    @property
    def at_once(self) -> int:
        """Number of products that are faster at once than one by one; 1 for none."""
        return min((leaf.at_once for leaf in self._measured), default=1)

    def together(self) -> AbstractContextManager[None]:
        """Open the model once for all products inside, if there is one operand.

        Each of several operands opens the model for each product, since they may want
        it in different modes.
        """
        alone = len(self._measured) == 1
        return self._measured[0].together() if alone else nullcontext()

    @abstractmethod
    def _apply(self, vectors: Tensor, *, many: bool = False) -> Tensor:
        """Multiply a flat vector, or many as rows."""

    def product(self, vector: Tensor) -> Tensor:
        """Multiply one flat tensor."""
        with self._counting():
            return self._apply(vector)

    def transposed_product(self, vector: Tensor) -> Tensor:
        """Multiply the transpose by one flat tensor."""
        with self._counting():
            return self._apply(vector) if self.symmetric else self.T.product(vector)

    def matvecs(self, vectors: Tensor) -> Tensor:
        """Multiply many vectors, several at once where all operands do so."""
        if self.at_once == 1:
            return super().matvecs(vectors)
        with self._counting():
            return self._apply(self._as_rows(vectors), many=True)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Add the passes that operands make inside."""
        before = sum(leaf.passes for leaf in self._leaves)
        yield
        self.passes += sum(leaf.passes for leaf in self._leaves) - before


class Transposed(Combined):
    """The transpose of another operator."""

    def __init__(self, inner: Operator) -> None:
        super().__init__([inner])
        self.shape = (inner.shape[1], inner.shape[0])
        self.layout, self._row_layout = inner.row_layout, inner.layout

    @property
    def row_layout(self) -> Layout:
        """Names and shapes of the parameters along the rows."""
        return self._row_layout

    def _apply(self, vectors: Tensor, *, many: bool = False) -> Tensor:
        multiply = self.parts[0].transposed_product
        return (
            torch.stack([multiply(v) for v in vectors]) if many else multiply(vectors)
        )

    def rebuilt(self, parts: Sequence[Operator]) -> Operator:
        """Return the transpose of another operator."""
        return Transposed(parts[0])

    def key(self, *, flipped: bool = False) -> Any:
        """Return how the operator is written, or its transpose."""
        return self.parts[0].key(flipped=not flipped)

    def written(self, *, modes: bool = False) -> str:
        """Return the operator in words."""
        return f"{self.parts[0].written(modes=modes)}.T"

    @property
    def T(self) -> Operator:
        """The original."""
        return self.parts[0]


def multiply(part: Operator, vectors: Tensor, *, many: bool) -> Tensor:
    """Multiply a flat vector, or many as rows, in the type of the operand."""
    given = vectors.to(dtype=part.torch_dtype)
    return part.matvecs(given) if many else part.product(given).detach()


def _leaves(operator: Operator) -> Iterator[Operator]:
    """Yield the operators at the bottom, which have their own products."""
    if not operator.parts:
        yield operator
    for part in operator.parts:
        yield from _leaves(part)
