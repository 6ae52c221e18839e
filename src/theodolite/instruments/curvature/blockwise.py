"""Run one instrument on every block of parameters: one per layer, or as named."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from torch import Tensor, nn

from theodolite.core import (
    ConfigError,
    Cost,
    Reading,
    Rows,
    Status,
    headline,
    metadata_line,
    quantity_line,
)

from ..differentiate.derivatives import sizes_of
from ..model.function_model import as_module
from ..model.process_state import measuring, with_progress
from ..model.reachable_state import chosen_parameters, unwrapped
from ..operators.operator import Operator
from ..passes.batches import Batches
from ..passes.grouping import read_batches
from ..passes.problem import Model, Problem
from .model_instruments import refuse_settings

R = TypeVar("R", bound=Reading)


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks(Reading, Generic[R]):
    """The readings of one instrument, block by block.

    Rows carry the name of their block in ``block``; ``status`` is the worst of all.

    Attributes:
        blocks: Names.
        readings: One reading per block, in the same order.
    """

    blocks: tuple[str, ...]
    readings: tuple[R, ...]

    def __getitem__(self, block: str) -> R:
        return dict(zip(self.blocks, self.readings, strict=True))[block]

    def __iter__(self) -> Iterator[tuple[str, R]]:
        return iter(zip(self.blocks, self.readings, strict=True))

    def __len__(self) -> int:
        return len(self.blocks)

    def stack(self, quantity: str) -> np.ndarray:
        """Return one quantity, blocks first; shorter blocks are padded with NaN."""
        parts = [np.asarray(getattr(r, quantity), float) for r in self.readings]
        shape = np.max([part.shape for part in parts], axis=0).astype(int)
        stacked = np.full((len(parts), *shape), np.nan)
        for place, part in enumerate(parts):
            stacked[(place, *(slice(size) for size in part.shape))] = part
        return stacked

    def summary_lines(self) -> list[str]:
        """Return the headline, and the first quantity of every block."""
        name = next(iter(self.readings[0].dims), "")
        width = max(map(len, self.blocks))
        told = [
            f"  {block:<{width}}  {name} {quantity_line(reading, name)}, "
            f"{reading.status}"
            for block, reading in self
        ]
        return [headline(self), metadata_line(self), *told]

    def rows(self, **labels: Any) -> Rows:
        """Melt all readings into flat rows, each with its block."""
        rows: list[Any] = []
        for block, reading in self:
            rows.extend(reading.rows(**{"block": block, **labels}))
        return Rows(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return every block's fields as plain JSON values."""
        return {block: reading.to_dict() for block, reading in self}


@with_progress()
def by_block(
    instrument: Callable[..., R],
    model: Model | Problem | Operator,
    batches: Batches | None = None,
    *,
    per: Literal["layer", "parameter"] = "layer",
    blocks: Mapping[str, Sequence[str]] | None = None,
    **settings: Any,
) -> Blocks[R]:
    """Measure diagonal blocks of the Hessian, one reading per block.

    Args:
        instrument: Such as ``extreme_eigenvalues``, ``trace`` or ``condition``.
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data, read once for all blocks.
        per: A block for each submodule with own parameters, or for each
            parameter; those that hold no numbers are left out.
        blocks: Maps names of blocks to names of parameters; replaces ``per``.
        settings: Passed on to the instrument, with those of :class:`Problem`.

    Example:
        >>> import torch
        >>> from theodolite.instruments import HalfSquareLoss, trace
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)).double()
        >>> data = torch.ones(3, 2).double(), torch.ones(3, 1).double()
        >>> result = by_block(
        ...     trace, model, data, loss=HalfSquareLoss(), norm_mode="eval"
        ... )
        >>> result.blocks, result.stack("trace").shape
        (('0', '1'), (2,))
    """
    names = _named(model, per) if blocks is None else blocks
    if not names:
        raise ConfigError("no blocks were named: pass for instance per='layer'")
    chosen = [list(params) for params in names.values()]
    if isinstance(model, Operator):
        refuse_settings("by_block", batches)
        calls = [partial(instrument, model[params]) for params in chosen]
    elif isinstance(model, Problem):
        whole = replace(model, batches=_read_once(model.batches))
        parts = [replace(whole, params=params) for params in chosen]
        calls = [partial(instrument, part) for part in parts]
    else:
        given = unwrapped(model) if isinstance(model, nn.Module) else model
        shared = partial(instrument, given, _read_once(batches))
        calls = [partial(shared, params=params) for params in chosen]
    with measuring("block"):  # whose products differ from those of all blocks
        readings = tuple(call(**settings) for call in calls)
    return Blocks(
        blocks=tuple(names),
        readings=readings,
        status=Status.worst(r.status for r in readings),
        norm_mode=readings[0].norm_mode,
        norm_layers=readings[0].norm_layers,
        seed=readings[0].seed,
        cost=sum((r.cost for r in readings), Cost()),
        method=f"blocks, {readings[0].method}",
    )


def _read_once(batches: Batches) -> Batches:
    """Return batches that all blocks share; a loader is read in the same order."""
    given = isinstance(batches, Tensor | list | tuple | Mapping | None)
    return batches if given else read_batches(batches)


def _named(
    model: Model | Problem | Operator, per: Literal["layer", "parameter"]
) -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    if isinstance(model, Operator):
        sizes = dict(zip(model.names, sizes_of(model.layout), strict=True))
    else:
        module = unwrapped(
            model.model if isinstance(model, Problem) else as_module(model)
        )
        chosen = chosen_parameters(module, None)
        sizes = {name: parameter.numel() for name, parameter in chosen.items()}
    for name, size in sizes.items():
        if not size:
            continue  # no parameter to differentiate by
        block = name if per == "parameter" else name.rpartition(".")[0]
        blocks.setdefault(block, []).append(name)
    return blocks
