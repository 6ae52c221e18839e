"""Ways to compute a tangent kernel, from fast to safe, within a given memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError, stream

from ..differentiate.derivatives import add, pull_back
from ..distributed.processes import Team
from ..model.objective import Batch
from ..model.process_state import counted
from ..passes.batches import split_batch
from .gram import Gram, add_rows
from .layer_sweep import Plan, groups, sweep

# Columns of the Jacobian held at a time: beyond a few thousand products are no faster.
_COLUMNS = 4_096


@dataclass(frozen=True)
class Share:
    """How memory is divided, in bytes.

    Attributes:
        columns: Columns of the Jacobian held at a time.
        layers: For activations and derivatives by them in one sweep.
        rows: For rows by parameters of unknown layers.
        peak: Total, including the matrix.
    """

    columns: int
    layers: int
    rows: int
    peak: int


def share_out(
    sheet: Plan,
    *,
    size: int,
    rows: int,
    itemsize: int,
    matrix_bytes: int,
    ranks: int = 1,
    most: int | None = None,
) -> Share:
    """Divide memory before anything large is allocated, or refuse.

    Args:
        sheet: Which layers there are.
        size: Rows of the matrix.
        rows: Rows of the Jacobian, those of all ranks.
        itemsize: Bytes of a number.
        matrix_bytes: Memory limit.
        ranks: Processes that share in the matrix.
        most: Rows of the Jacobian that one of these has at most.
    """
    # The half that grows, the whole of it, and in float64 that and the copy that the
    # eigensolver works on.
    fixed = size**2 * (3 * itemsize + 16)
    largest = max((unit.bytes for unit in sheet.units), default=0)
    if ranks > 1:  # what all of them have of one layer comes together, twice
        fixed += 2 * ranks * largest
    # A block of columns, and the layer's own copy of what it is made from; or a rank's
    # own block, and those of all on their way.
    column = 2 * rows * itemsize
    if ranks > 1 and most is not None:
        column = 2 * most * (ranks + 2) * itemsize
    spare = matrix_bytes - fixed - largest - column
    if spare < 0:
        raise MeasurementError(
            f"the tangent kernel of {rows:,} outputs takes "
            f"{(matrix_bytes - spare) / 2**30:.3g} GiB, allowed are "
            f"{matrix_bytes / 2**30:.3g}: raise matrix_bytes, pass less data, use "
            "trace_outputs=True, or products of TangentKernel"
        )
    columns = 1 + min(_COLUMNS, spare // 2 // column)
    for_rows = columns * column
    every = sum(unit.bytes for unit in sheet.units)
    layers = largest + min(every - largest, spare - (columns - 1) * column)
    rest = sum(parameter.numel() for parameter in sheet.rest)
    for_rows = max(for_rows, min(rest * column, matrix_bytes - fixed - layers))
    return Share(columns, layers, for_rows, fixed + layers + for_rows)


def agrees(value: float, wanted: float, eps: float) -> bool:
    """Return whether two results agree up to rounding, and are finite."""
    scale = max(abs(value), abs(wanted), 1e-300)
    finite = isfinite(value) and isfinite(wanted)
    return finite and abs(value - wanted) <= 1e3 * eps * scale


class LayerStrategy:
    """One measurement: its data, its memory and the ways it may take.

    Each process has its own samples, and all of them get the whole matrix.
    """

    def __init__(
        self,
        model: nn.Module,
        scenes: Sequence[Batch],
        run: Callable[[Batch], Tensor],
        chosen: list[nn.Parameter],
        sheet: Plan,
        traced: bool,
        matrix_bytes: int,
        team: Team,
    ) -> None:
        self._model, self._scenes, self._run = model, scenes, run
        self._chosen, self._sheet, self.traced = chosen, sheet, traced
        self._team = team
        counts = [
            int(n) for n in team.gather(torch.tensor(sum(sheet.samples), device="cpu"))
        ]
        self.samples, self.width = sum(counts), sheet.width
        self._before = sum(counts[: team.rank])
        self.rows = self.samples * self.width
        self.passes = 0
        self._share = share_out(
            sheet,
            size=self.samples if traced else self.rows,
            rows=self.rows,
            itemsize=chosen[0].itemsize,
            matrix_bytes=-int(team.largest(-matrix_bytes)),
            ranks=team.size,
            most=max(counts) * self.width,
        )
        self.peak_bytes = self._share.peak
        # What a block of rows by unknown layers takes; a rank's, with all on their way.
        there = max(counts) * (2 * team.size + 4) if team.several else self.samples
        column = there * self.width * chosen[0].itemsize
        self._columns = max(1, self._share.rows // column)

    def kernel(self, *, coupled: bool) -> tuple[Tensor, str]:
        """Return the matrix by the fastest way that passes the check."""
        if not coupled:
            for layered, method in ((True, "layer by layer"), (False, "by samples")):
                matrix = self._uncoupled(layered=layered)
                if self._confirmed(matrix):
                    return matrix, method
        gram = self._gram()
        self._add(self._scenes, self._chosen, gram)
        matrix = gram.matrix()
        if not self._confirmed(matrix):
            raise MeasurementError(
                "two ways to the tangent kernel disagree beyond rounding, or it holds "
                "NaN or infinity: look for randomness and changing state in the model, "
                "and check the data"
            )
        return matrix, "by rows"

    def _uncoupled(self, *, layered: bool) -> Tensor:
        gram = self._gram()
        for group in groups(self._sheet.units if layered else [], self._share.layers):
            self.passes += sweep(
                self._model,
                self._scenes,
                self._run,
                group,
                gram,
                columns=self._share.columns,
            )
        rest = self._sheet.rest if layered else self._chosen
        if rest:
            singles = [p for scene in self._scenes for p in split_batch(scene, 1)]
            self._add(singles, rest, gram)
        return gram.matrix()

    def _add(
        self, pieces: Sequence[Batch], parameters: list[nn.Parameter], gram: Gram
    ) -> None:
        self.passes += add_rows(
            pieces,
            self._run,
            parameters,
            gram,
            rows=sum(self._sheet.samples) * self.width,
            columns=self._columns,
        )

    def _gram(self) -> Gram:
        return Gram(
            self.samples,
            self.width,
            traced=self.traced,
            like=self._chosen[0].detach(),
            team=self._team,
        )

    def _confirmed(self, matrix: Tensor) -> bool:
        r"""Compare a random quadratic form with $\|DF^\top v\|^2$, on all ranks."""
        vectors = stream(0, "check").standard_normal((len(matrix),))
        vector = torch.from_numpy(vectors).to(matrix)
        value = float(vector.double() @ (matrix.double() @ vector.double()))
        if self.traced:
            eye = torch.eye(self.width, dtype=matrix.dtype, device=matrix.device)
            cotangents = [torch.outer(vector, unit) for unit in eye]
        else:
            cotangents = [vector.reshape(self.samples, self.width)]
        wanted = sum(self._squared_norms(cotangents))
        right = agrees(value, wanted, torch.finfo(matrix.dtype).eps)
        return not self._team.largest(not right)

    def _squared_norms(self, cotangents: list[Tensor]) -> list[float]:
        for parameter in self._chosen:
            parameter.requires_grad_(True)
        totals = [[torch.zeros_like(p) for p in self._chosen] for _ in cotangents]
        start = self._before
        for scene in self._scenes:
            outputs = self._run(scene)
            outputs = outputs.reshape(len(outputs), -1)
            for total, cotangent in zip(totals, cotangents, strict=True):
                if outputs.requires_grad:
                    part = cotangent[start : start + len(outputs)].to(outputs)
                    add(total, pull_back([outputs], self._chosen, [part]))
            start += len(outputs)
            self.passes += len(cotangents)
            counted(len(cotangents))
        for parameter in self._chosen:
            parameter.requires_grad_(False)
        for part in (part for total in totals for part in total):
            self._team.sum_(part)
        return [sum(float(p.double().square().sum()) for p in t) for t in totals]
