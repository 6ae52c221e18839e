"""An operator whose products are made by the members of a crew."""

import secrets
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from theodolite.core import ConfigError, NormMode
from theodolite.instruments.model.fingerprint import Fingerprint
from theodolite.instruments.model.objective import chosen_parameters
from theodolite.instruments.model.reach import Reach
from theodolite.instruments.operators.coarsest import (
    seen_elsewhere,
    unwatched,
    watched,
)
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.operators.parameter_operator import ParameterOperator
from theodolite.instruments.operators.station import (
    Order,
    Station,
    applied,
    described,
    free_bytes,
    separable,
    way,
    way_reason,
)
from theodolite.instruments.operators.twin import Several
from theodolite.instruments.passes.announcing import counted
from theodolite.instruments.passes.batches import (
    Batches,
    samples_in,
    slice_batch,
    split_batch,
    tensors_in,
)
from theodolite.instruments.passes.one_model import unwrapped
from theodolite.instruments.passes.streams import StreamedBatches, read_batches
from theodolite.instruments.team.crews import Executor
from theodolite.instruments.team.processes import Team

# Names of operators that are in use; members let all others go.
_wanted: set[str] = set()
# As many samples as are measured together and apart before a batch is cut.
_FEW = 4


class FarOperator(ParameterOperator):
    """Stands for an operator that a crew has, each member on its share of the data.

    A vector goes to all members and the product comes back, summed. Members that are
    lost are replaced and what they held is computed again. The model and the data are
    sent again when they have changed.

    Args:
        kind: The class of the operator.
        model: Its model.
        batches: Its data; whole batches go to members, or parts where there are fewer
            batches than members and the loss is a sum over samples.
        executor: Who has the crew.
        settings: All else that the class takes.
    """

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make the one that stays here."""
        return object.__new__(cls)

    def __init__(
        self,
        kind: Callable[..., Operator],
        model: nn.Module,
        batches: Batches,
        *,
        executor: Executor,
        settings: Mapping[str, Any],
    ) -> None:
        if settings.get("team") is not None:
            raise ConfigError(
                "both a team and an executor came, wanted is one: a team where this "
                "script runs on every rank, an executor where it runs once"
            )
        self._kind, self._executor = kind, executor
        self._settings = {k: v for k, v in settings.items() if k != "team"}
        most = self._settings.pop("max_batches", None)
        self._far_model = unwrapped(model)
        self._items = read_batches(batches, max_batches=most)
        self.norm_mode = NormMode(self._settings["norm_mode"])
        self._crew = executor.crew(Station)
        self.partition = tuple(samples_in(item) for item in self._items)
        self._handles: Sequence[Any] = ()
        self._name, self._version = secrets.token_hex(8), -1
        self._fingerprint: Fingerprint | None = None
        self._data_mark: Fingerprint | None = None
        weakref.finalize(self, _wanted.discard, self._name)
        chosen = chosen_parameters(self._far_model, self._settings.get("params"))
        self.device = next(iter(chosen.values())).device
        self.team, self.coupled, self.passes = Team(), True, 0
        self.layout: Any = ()
        self.coarsest = 0.0
        with unwatched():  # types that count are those that members compute in
            order = self._order()
        found = self._crew.ask(described, order, watched())
        for name, value in found.items():
            setattr(self, name, value)
        seen_elsewhere(self.coarsest)
        self._sizes = [torch.Size(shape).numel() for _, shape in self.layout]

    @property
    def model(self) -> nn.Module:
        """The model, unwrapped if it was compiled."""
        return self._far_model

    @property
    def graphs_held(self) -> int:
        """How many graphs are kept here between products, which is none."""
        return 0

    @property
    def way(self) -> str:
        """How the first member takes its part of products."""
        return self._crew.ask(way, self._order())

    @property
    def way_reason(self) -> str:
        """Why chunks of the first member take turns; empty where they do not."""
        return self._crew.ask(way_reason, self._order())

    def together(self) -> AbstractContextManager[None]:
        """Open nothing: the members open what they have."""
        return nullcontext()

    def matvec(self, vector: Tensor) -> Tensor:
        """Multiply one flat vector."""
        return self._asked("matvec", vector)

    def rmatvec(self, vector: Tensor) -> Tensor:
        """Multiply one flat vector into the transpose."""
        return self._asked("rmatvec", vector)

    def block_matvec(self, places: Sequence[int], vector: Tensor) -> Tensor:
        """Multiply a diagonal block."""
        return self._asked("block_matvec", vector, tuple(places))

    def loss_and_gradient(self) -> tuple[Tensor, Tensor]:
        """Return the loss of all the data and its flat gradient."""
        return self._asked("loss_and_gradient", None)

    def outputs(self) -> Tensor:
        """Return the outputs of all the data, flat, as the rows of a Jacobian go."""
        return self._asked("outputs", None)

    def free_elsewhere(self) -> int | None:
        """Return the memory that is free where members are, where it is least."""
        return self._crew.ask(free_bytes, self._order())

    def close(self) -> None:
        """Have members let the graphs go that they keep between products."""
        _wanted.discard(self._name)

    def remade(self, change: Callable[[Any], Any]) -> Operator | None:
        """Return the operator of a changed model and changed data."""
        settings, model = (
            dict(self._settings),
            change(self._far_model),
        )  # which is first
        if self.layout:
            settings["params"] = self.names
        if "loss" in settings:
            settings["loss"] = change(settings["loss"])
        return FarOperator(
            self._kind,
            model,
            self.changed_data(change),
            executor=self._executor,
            settings=settings,
        )

    def changed_data(self, change: Callable[[Any], Any]) -> Any:
        """Return the batches, changed one by one."""
        items = self._items
        return change(items[0]) if len(items) == 1 else Several(items, change)

    def _pieces(self) -> Sequence[Any]:
        """Cut batches where members outnumber them and cutting changes nothing."""
        drawn = self._settings.get("randomness", "refuse") == "fixed"
        if self.norm_mode is NormMode.BATCH or drawn or None in self.partition:
            return self._items
        samples = sum(count or 0 for count in self.partition)
        size = -(-samples // self._crew.size)
        if len(self._items) >= self._crew.size or size < 1 or not self._separable:
            return self._items
        return [part for item in self._items for part in split_batch(item, size)]

    @cached_property
    def _separable(self) -> bool:
        """Whether samples apart give what they give together, as members find."""
        place = max(range(len(self._items)), key=lambda i: self.partition[i] or 0)
        few = self._crew.put(slice_batch(self._items[place], 0, _FEW))
        return self._crew.ask(separable, self._subject, few)

    def _order(self) -> Order:
        reach = Reach([self._far_model, *filter(callable, self._settings.values())])
        if self._fingerprint is None or not self._fingerprint.matches(reach):
            self._fingerprint = Fingerprint(reach)
            subject = self._kind, self._far_model, self._settings
            self._subject = self._crew.put(subject)
            self._version += 1
            self.noise_norm = None
        self._send_data()
        _wanted.add(self._name)
        return Order(
            name=self._name,
            version=self._version,
            subject=self._subject,
            batches=self._handles,
            wanted=frozenset(_wanted),
        )

    def _send_data(self) -> None:
        """Send the data, again where they have changed; a loader's are read once."""
        nothing = Reach([])
        if self._data_mark is not None and self._data_mark.matches(nothing):
            return
        items = () if isinstance(self._items, StreamedBatches) else self._items
        held = [tensor for item in items for tensor in tensors_in(item)]
        self._data_mark = Fingerprint(nothing, held)
        self._handles = [self._crew.put(part) for part in self._pieces()]
        self._version += 1
        self.noise_norm = None

    def _asked(self, method: str, vector: Tensor | None, *first: Any) -> Any:
        given = [] if vector is None else [self._crew.put(vector.detach().cpu())]
        answer, passes = self._crew.ask(applied, self._order(), method, given, *first)
        self.passes += passes
        counted()
        return tree_map(self._arrived, answer)

    def _arrived(self, part: Any) -> Any:
        scalar = isinstance(part, Tensor) and not part.ndim
        return part if scalar or not isinstance(part, Tensor) else part.to(self.device)
