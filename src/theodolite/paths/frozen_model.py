"""A model prepared for path measures: in float64, with norm statistics frozen."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from theodolite.anatomy import unfused
from theodolite.core import Exclusive, MeasurementError, NormMode
from theodolite.instruments import (
    Batch,
    Loss,
    Outputs,
    apply_norm_mode,
    as_loss,
    checked_outputs,
    norm_layers_as_is,
    opened,
    pair_of,
    preserve,
    run_model,
)

from .branches import Branch, find_branches
from .tape import Tape
from .tracing import Tracer


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A model to measure, its data, and the function that returns its output."""

    model: nn.Module  # in the precision of the measurement
    batch: Batch  # in that precision too
    # Picks the output, where a call on the inputs does not return it.
    outputs: Outputs | None
    norm_mode: NormMode  # statistics that norms use
    # Names of norm layers by their mode, under ``as_is``.
    norm_layers: dict[str, tuple[str, ...]]
    promoted: bool  # whether the model is a copy in double precision

    def run(self, batch: Batch) -> Tensor:
        """Run the model on some samples."""
        if self.outputs is not None:
            return checked_outputs(self.outputs(self.model, batch))
        return checked_outputs(run_model(self.model, batch))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Restore the model on exit; it may write to its buffers meanwhile.

        Tensors that a float64 copy creates, such as masks, are in float64 too.
        """
        with preserve(self.model), opened(self.model, careful=False) as state:
            state.lend_buffers()
            if self.promoted:  # restored on exit, like the rest of the state
                torch.set_default_dtype(torch.float64)
            yield

    @contextmanager
    def frozen(self) -> Iterator[bool]:
        """Freeze norm statistics; yield whether the batch can be cut into chunks.

        A batch norm that is applied twice or as a function has no statistics to
        freeze; then the batch is not cut.
        """
        with self.opened():
            try:
                apply_norm_mode(self.model, self.norm_mode, self._pass, hold=True)
                apart = True
            except MeasurementError:
                if self.norm_mode in (NormMode.FROZEN, NormMode.EVAL):
                    raise
                apply_norm_mode(self.model, self.norm_mode, self._pass)
                apart = False
            yield apart

    def true_output(self) -> Tensor:
        """Return the output of the whole batch in its norm mode, nothing frozen."""
        with self.opened(), torch.no_grad():
            try:
                apply_norm_mode(self.model, self.norm_mode, self._pass)
                return self.run(self.batch).detach().clone()
            except RuntimeError as error:
                raise self._unrun(error) from error

    def true_gradient(self, cotangent: Tensor) -> list[Tensor] | None:
        """Return the gradient by the inputs, through norm statistics too, or None."""
        with self.opened(), torch.enable_grad():
            apply_norm_mode(self.model, self.norm_mode, self._pass)
            leaves: list[Tensor] = []

            def leaf(part: Any) -> Any:
                if not isinstance(part, Tensor) or not part.is_floating_point():
                    return part
                leaves.append(part.detach().clone().requires_grad_())
                return leaves[-1]

            output = self.run(_inputs_mapped(self.batch, leaf))
            if not leaves:
                return None
            gradients = torch.autograd.grad(
                output, leaves, cotangent, allow_unused=True
            )
            return [g for g in gradients if g is not None]

    def trace(self, batch: Batch, *, linearise: bool) -> Tape:
        """Return the tape of some samples; call it inside :meth:`frozen`."""
        tracer = Tracer(linearise=linearise)
        inputs = batch
        if isinstance(batch, tuple | list) and len(batch) == 2:
            inputs = batch[0]
        tracer.follow(inputs)
        with unfused(self.model), tracer:
            output = self.run(batch)
        if not output.numel() or not torch.isfinite(output).all():
            came = "hold NaN or infinity" if output.numel() else "are empty"
            raise MeasurementError(
                f"the outputs {came}: check the data and the weights, and pass at "
                "least one sample"
            )
        return tracer.tape(output.detach())

    def trace_branches(
        self, batch: Batch, *, linearise: bool
    ) -> tuple[Tape, tuple[Branch, ...]]:
        """Return a tape and its branches; call it inside :meth:`frozen`."""
        branches = find_branches(self.model, batch, self.outputs)
        tape = self.trace(batch, linearise=linearise)
        return tape, branches.on(tape)

    def _unrun(self, error: RuntimeError) -> Exception:
        """Return the error for a float64 copy that does not run."""
        if not self.promoted or "dtype" not in str(error):
            return error
        return MeasurementError(
            f"the model's copy in double precision does not run "
            f"({str(error).splitlines()[0]}): convert the model by double() where it "
            "casts, or pass promote=False"
        )

    def _pass(self) -> None:
        with torch.no_grad():
            self.run(self.batch)


def subject_of(
    model: nn.Module,
    batch: Batch,
    *,
    outputs: Outputs | None,
    norm_mode: NormMode | str,
    promote: bool,
) -> Subject:
    """Return a model prepared for measurement; a float64 copy by default."""
    model = getattr(model, "_orig_mod", model)
    kinds = {p.dtype for p in model.parameters() if p.is_floating_point()}
    coarse = bool(kinds - {torch.float64})
    if coarse and promote:
        model, batch = _doubled(model), tree_map(_double, batch)
    return Subject(
        model=model,
        batch=batch,
        outputs=outputs,
        norm_mode=NormMode(norm_mode),
        norm_layers=norm_layers_as_is(model, NormMode(norm_mode)),
        promoted=coarse and promote,
    )


def cotangent_of(loss: Loss, output: Tensor, batch: Batch) -> Tensor:
    """Return the gradient of a loss by the outputs of a whole batch."""
    loss = as_loss(loss)
    with torch.enable_grad():
        leaf = output.detach().clone().requires_grad_()
        if isinstance(loss, nn.Module):
            value = _in_precision(loss, leaf)(leaf, pair_of(batch)[1])
        else:
            value = loss(_Returning(leaf), batch)
        if not isinstance(value, Tensor) or value.numel() != 1:
            raise MeasurementError(
                "the loss returned no single number: reduce it, for instance by its "
                "mean"
            )
        (cotangent,) = torch.autograd.grad(value.reshape(()), leaf)
    return cotangent


class _Returning(nn.Module):
    """A model that returns an output computed before."""

    def __init__(self, output: Tensor) -> None:
        super().__init__()
        self._output = output

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._output


def _in_precision(loss: nn.Module, output: Tensor) -> nn.Module:
    own = [t for t in (*loss.parameters(), *loss.buffers()) if t.is_floating_point()]
    if any(tensor.dtype != output.dtype for tensor in own):
        return copy.deepcopy(loss).to(output.dtype)
    return loss


def _doubled(model: nn.Module) -> nn.Module:
    try:
        with Exclusive():
            return copy.deepcopy(model).double()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise MeasurementError(
            f"the model cannot be copied ({str(error).splitlines()[0]}), which a twin "
            "in double precision wants: convert it by double(), or pass promote=False"
        ) from error


def _double(leaf: Any) -> Any:
    real = isinstance(leaf, Tensor) and leaf.is_floating_point()
    return leaf.double() if real else leaf


def _inputs_mapped(batch: Batch, change: Callable[[Any], Any]) -> Batch:
    """Change the tensors of a batch's inputs, and leave its targets."""
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return (tree_map(change, batch[0]), batch[1])
    return tree_map(change, batch)
