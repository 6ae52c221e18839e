"""The base of operators on the parameters of a model, and their kept graphs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Self, Unpack

from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode

from ..differentiate.batch_norm_twice import own_statistics
from ..differentiate.derivatives import Curve, Parts, flat, sizes_of, split
from ..differentiate.twice import BatchNormCalls, custom_functions
from ..distributed.processes import Team, agreed
from ..model.objective import Reduction, checked_value, reduction_of
from ..model.reachable_state import norm_layers
from ..norms.normalisation import norm_layers_as_is
from ..passes.batches import Batches
from ..passes.grouping import Chunk
from ..passes.problem import (
    Measurement,
    Model,
    Problem,
    ProblemSettings,
    problem_of,
    refuse_unknown,
    with_settings,
)
from ..passes.set_up import prepare
from .block import join
from .derivative_check import CheckedFunction
from .operator import Operator
from .rounding_reference import in_float64


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
        plain: Whether all derivatives are known to be torch's or ours.
        partition: Samples of each batch as given; under norm mode ``batch`` it is a
            part of the definition.
        micro_batch: Samples per pass, if data is split to save memory.
        forecast_bytes: Forecast peak memory of the largest pass, None where unknown.
        coupled: Whether batch statistics run over several passes, on any rank.
        team: Processes that hold batches; all multiply the same vectors together.
        title: Name of the matrix, for methods of readings.
    """

    title = "Hessian"
    plain = False

    @with_settings
    def __init__(
        self,
        model: Model | Problem,
        batches: Batches | None = None,
        **settings: Unpack[ProblemSettings],
    ) -> None:
        refuse_unknown(type(self), settings)
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

    def _measurement(self) -> Measurement:
        """Return the quantity that products differentiate: by default the loss."""
        return Measurement(
            kind=type(self).__name__,
            measure=self.problem.measured_loss(),
            build=Curve,
            walk=lambda curve, _, tangents: curve.product(tangents),
            divisor=self.problem.divisor(),
            scalar=True,
            checked=checked_value,
        )

    @property
    def changes(self) -> int:
        """How often products met a model or data that had changed."""
        return self._prepared.changes

    @property
    def reduction(self) -> Reduction:
        """How the loss combines samples."""
        return reduction_of(self.problem.criterion, self.problem.reduction)

    @property
    def norm_layers(self) -> dict[str, tuple[str, ...]]:
        """Names of norm layers by their mode, under ``as_is``."""
        model = self._prepared.model
        return norm_layers_as_is(model, self.norm_mode) if norm_layers(model) else {}

    def together(self) -> AbstractContextManager[None]:
        """Open the model once for all products inside; restore it at the end.

        This needs kept graphs: code that runs again must start from the original state.
        Ranks, which may keep them or not, open the model for every product together.
        """
        kept = self._prepared.keeps_graphs and not self.team.several
        return self._prepared.session(products=0) if kept else nullcontext()

    @property
    def source(self) -> Self:
        """The operator itself, which holds the model."""
        return self

    def remaking(
        self,
        model: nn.Module,
        batches: Any,
        loss: Any,
        graph_bytes: int | None,
        pass_bytes: int | None,
    ) -> Callable[[], Operator]:
        """Return a function that makes the operator of another model and data."""
        problem = replace(
            self.problem,
            model=model,
            batches=batches,
            loss=loss,
            norm_mode=self.norm_mode,
            params=[name for name, _ in self.layout],
            max_batches=None,
            replay=False,
            graph_bytes=graph_bytes or self.problem.graph_bytes,
            pass_bytes=pass_bytes,
        )
        return partial(type(self), problem)

    def _check_once(self) -> None:
        """Check custom derivatives, before the first product; in a session.

        Samples of one pass are enough: functions are the same for all. Weights are
        changed in a copy in float64, in the model itself only where it has no copy.
        """
        if self.checked:
            return
        with BatchNormCalls(own_statistics):
            parts = self._checked_functions()
            doubtful = [p for p in parts if custom_functions(p.run(), p.variables)]
            self.plain = not doubtful
        if doubtful and not self._copy_checked():
            with BatchNormCalls(own_statistics):
                for part in doubtful:
                    part.check()
        self.checked = True

    def _copy_checked(self) -> bool:
        """Check a copy in float64; return whether there is one."""
        copy = None if self.team.several else in_float64(self)
        if copy is None:
            return False
        try:
            with copy._prepared.session(products=0), BatchNormCalls(own_statistics):
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
        run, leaves = partial(self._prepared.run, chunk), self._prepared.leaves
        twice = self._prepared.measured.scalar
        return [CheckedFunction(run=run, variables=leaves, twice=twice)]

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

    @property
    def loss(self) -> Any:
        """The loss as given, None if there is none."""
        return self.problem.loss

    @property
    def items(self) -> Sequence[Any]:
        """The batches."""
        return self._prepared.items

    def _parts(self, vector: Tensor) -> Parts:
        return list(self.split(agreed(vector.detach(), self.team)).values())

    def _summed(self, parts: Parts) -> Tensor:
        """Return the sum over ranks as one vector."""
        return self.team.sum_(flat(parts))
