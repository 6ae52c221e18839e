"""The base of operators on the parameters of a model, and their kept graphs."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Self, Unpack

from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode

from ..differentiate.derivatives import Parts, flat
from ..differentiate.model_backward import custom_functions
from ..distributed.processes import Team, agreed
from ..model.function_model import Model
from ..model.objective import Reduction, reduction_of
from ..norms.batch_norm_calls import BatchNormCalls, own_statistics
from ..norms.normalisation import norm_layers_as_is
from ..passes.batches import Batches, are_two_alike
from ..passes.grouping import Chunk
from ..passes.problem import (
    Measurement,
    Problem,
    ProblemSettings,
    problem_of,
    refuse_unknown,
    with_settings,
)
from ..passes.set_up import prepare
from .derivative_check import CheckedFunction
from .layout import join, sizes_of, split
from .operator import Operator
from .rounding_reference import ChangedBatches, in_float64


class ParameterOperator(Operator):
    """An operator whose columns are parameters of a model.

    It follows the model: after a training step products are those at the new
    parameters. Graphs are kept between products; ``close()`` or leaving a ``with``
    frees them, and a later product builds them again.

    Args:
        model: Any module, never changed; or a :class:`Problem`.
        batches: Its data, where no :class:`Problem` was given.
        settings: Those of :class:`Problem`.

    Attributes:
        problem: The model, its data and the settings.
        layout: Names and shapes of the parameters along the columns.
        norm_mode: Statistics that normalisation layers use.
        partition: Samples of each batch as given; under norm mode ``batch`` it is a
            part of the definition.
        micro_batch: Samples per pass, if data is split to save memory.
        forecast_bytes: Forecast peak memory of the largest pass, None where unknown.
        coupled: Whether batch statistics run over several passes, on any rank.
        team: Processes that hold batches; all multiply the same vectors together.
        title: Name of the matrix, for methods of readings.
    """

    title = "Hessian"

    @with_settings
    def __init__(
        self,
        model: Model | Problem,
        batches: Batches | None = None,
        **settings: Unpack[ProblemSettings],
    ) -> None:
        refuse_unknown(type(self).__init__, settings)
        self.problem = problem_of(model, batches, settings)
        self._prepared = prepare(self.problem, self._measurement())
        self.layout = self._prepared.layout
        self.torch_dtype, self.device = self._prepared.dtype, self._prepared.device
        self.norm_mode: NormMode = self._prepared.mode
        self.team: Team = self._prepared.team
        self.micro_batch, self.seed = self.problem.micro_batch, self.problem.seed
        self.randomness, plan = self.problem.randomness, self._prepared.plan
        self.partition, self.coupled = plan.partition, plan.coupled
        self.forecast_bytes = plan.forecast_bytes
        self._sizes = sizes_of(self.layout)
        self.shape = (sum(self._sizes), sum(self._sizes))
        self.passes = 0
        self._checked = False

    @abstractmethod
    def _measurement(self) -> Measurement:
        """Return the quantity that products differentiate."""

    @property
    def noise_norm(self) -> float | None:
        """Bound on the rounding of the graph, once measured at these parameters."""
        return self._prepared.noise_norm

    @noise_norm.setter
    def noise_norm(self, bound: float | None) -> None:  # pyright: ignore
        self._prepared.noise_norm = bound

    @property
    def reduction(self) -> Reduction:
        """How the loss combines samples."""
        return reduction_of(self.problem.criterion, self.problem.reduction)

    @property
    def norm_layers(self) -> dict[str, tuple[str, ...]]:
        """Names of norm layers by their mode, under ``as_is``."""
        return norm_layers_as_is(self._prepared.model, self.norm_mode)

    def together(self) -> AbstractContextManager[None]:
        """Open the model once for all products inside; restore it at the end.

        This needs kept graphs: code that runs again must start from the original state.
        Ranks, which may keep them or not, open the model for every product together.
        """
        kept = self._prepared.keeps_graphs and not self.team.several
        return self._prepared.together() if kept else nullcontext()

    def remade(
        self, change: Callable[[Any], Any], samples: int | None = None, **settings: Any
    ) -> Self:
        """Return the operator of a changed model and changed data, in new settings.

        Batches are cut to at most so many samples, where that is given.
        """
        loss = self.problem.loss
        operator = type(self)(
            replace(
                self.problem,
                model=change(self.model),
                batches=self.changed_data(change, samples),
                loss=None if loss is None else change(loss),
                norm_mode=self.norm_mode,
                params=self.names,
                max_batches=None,
                replay=False,
                **settings,
            )
        )
        operator._checked = True  # if the original was checked
        return operator

    def _check_once(self) -> None:
        """Check custom derivatives, before the first product; in a session.

        Samples of one pass are enough: functions are the same for all. Weights are
        changed in a copy in float64, in the model itself only where it has no copy.
        """
        if self._checked:
            return
        with BatchNormCalls(own_statistics):
            parts = self._checked_functions()
            doubtful = [p for p in parts if custom_functions(p.run(), p.variables)]
        if doubtful and not self._copy_checked():
            with BatchNormCalls(own_statistics):
                for part in doubtful:
                    part.check()
        self._checked = True

    def _copy_checked(self) -> bool:
        """Check a copy in float64; return whether there is one."""
        copy = None if self.team.several else in_float64(self)
        if not isinstance(copy, ParameterOperator):
            return False
        try:
            with copy._prepared.together(), BatchNormCalls(own_statistics):
                parts = copy._checked_functions()
                found = [custom_functions(p.run(), p.variables) for p in parts]
                pairs = zip(parts, found, strict=True)
                checks = [part.check() for part, custom in pairs if custom]
                return bool(checks) and all(checks)  # none may be custom in float64
        except MeasurementError:
            raise
        except Exception:  # a function without float64
            return False

    def _checked_functions(self) -> list[CheckedFunction]:
        """Return the functions that products of one chunk differentiate."""
        chunks = [
            chunk for group in self._prepared.plan.groups for chunk in group.chunks
        ]
        if not chunks:
            return []  # only other ranks hold chunks
        return self._differentiated(max(chunks, key=lambda one: one.weight).held())

    def _differentiated(self, chunk: Chunk) -> list[CheckedFunction]:
        """Return the functions that products of a given chunk differentiate."""
        del chunk
        return []

    @property
    def graphs_held(self) -> int:
        """Number of graphs that are kept between products."""
        return len(self._prepared.graphs)

    @property
    def way(self) -> str:
        """How products are computed: by graphs, or over chunks that share statistics.

        ``graphs``, ``graphs on the host``, ``in step``, ``in step on the host`` or ``by
        turns``; for chunks the choice is made with the first product, and until then
        it is ``chunks``.
        """
        coupled = [group for group in self._prepared.plan.groups if group.coupled]
        if not coupled:
            offload = self._prepared.plan.offload
            return "graphs on the host" if offload else "graphs"
        ways = {g.statistics.way for g in coupled if g.statistics is not None}
        return ", ".join(sorted(ways)) or "chunks"

    @property
    def way_reason(self) -> str:
        """Why chunks are sequential, with one pass over all per norm; else empty."""
        statistics = [group.statistics for group in self._prepared.plan.groups]
        reasons = {joint.reason for joint in statistics if joint is not None}
        return "; ".join(sorted(reasons - {""}))

    def split(self, vector: Tensor) -> dict[str, Tensor]:
        """Return a flat vector by parameter names, in the parameters' shapes."""
        return split(self.layout, vector)

    def join(self, parts: Mapping[str, Tensor]) -> Tensor:
        """Return the flat vector of named parts; missing parts are zero."""
        return join(self.layout, parts, self.torch_dtype, self.device)

    def close(self) -> None:
        """Free the graphs that are kept between products."""
        self._prepared.graphs.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def model(self) -> nn.Module:
        """The model, unwrapped if it was compiled."""
        return self._prepared.model

    def changed_data(
        self, change: Callable[[Any], Any], samples: int | None = None
    ) -> Any:
        """Return the batches, changed one by one, and cut where samples are given."""
        items = self._prepared.items
        # A loader's pair may be one that is refused if given directly.
        alone = len(items) == 1 and not are_two_alike(items[0]) and samples is None
        return change(items[0]) if alone else ChangedBatches(items, change, samples)

    def _parts(self, vector: Tensor) -> Parts:
        return list(self.split(agreed(vector.detach(), self.team)).values())

    def _summed(self, parts: Parts) -> Tensor:
        """Return the sum over ranks as one vector."""
        return self.team.sum_(flat(parts))
