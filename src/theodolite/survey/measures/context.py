"""State shared by all measures of one survey: the model, its data, and cached results.

Results that several measures read, such as the map or one gradient pass, are computed
once, on first use.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._pytree import tree_map

from theodolite.core import MeasurementError, NormMode, TheodoliteError
from theodolite.instruments import (
    Batch,
    ExtremeEigenvalues,
    Hessian,
    Loss,
    Problem,
    apply_norm_mode,
    evaluate,
    norm_layers_as_is,
    opened,
    run_model,
    samples_in,
    slice_batch,
)

from ..subject.imported import error_text
from ..subject.made_up import real_tensors
from .activation_hooks import OtherWayError
from .batch_use import as_called, can_be_cut
from .block_map import BlockMap, block_map_of, empty_block_map
from .first_pass import FirstPass, run_first_pass

# Samples on which the parts of a network are recorded.
_MAPPED = 8
# Samples on which products are compared with finer arithmetic.
_COMPARED = 4
# A product with the Hessian in gradients, its graph kept: two backward passes, and
# vectors of Lanczos.
PRODUCT = 2.0
# Errors that foreign models may raise when an instrument runs them.
FOREIGN = (TheodoliteError, RuntimeError, ValueError, TypeError, AttributeError)
FOREIGN += (LookupError, ArithmeticError, AssertionError, MemoryError)


@dataclass(kw_only=True, eq=False)
class SurveyContext:
    """A model opened for a survey.

    Attributes:
        problem: The model, in modes in which it draws no random numbers, its norms in
            the norm mode; the batches, the loss, the norm mode and the seed.
        effort: Gradients that the survey may compute.
        optimizer: The optimiser in use, if one was given.
        step: The user's own training step, if one was given.
        labels_known: Whether targets are real, not made up.
        modes: Original train or eval mode of each module, by its name.
        random_layers_off: Whether modules drew random numbers and are in eval mode.
        unsupported: Sentences on layers that an instrument cannot handle.
        mode_asked: The requested norm mode, if ``norm_mode`` differs from it.
        unmapped: Why no map could be made, if that failed.
        passes: Backward passes made so far.
        leading: Ends of the Hessian's spectrum, once measured.
    """

    problem: Problem
    effort: float = 400.0
    optimizer: Optimizer | None = None
    step: Callable[[Batch], Any] | None = None
    labels_known: bool = True
    modes: Mapping[str, bool] = field(default_factory=dict)
    random_layers_off: bool = False
    unsupported: list[str] = field(default_factory=list)
    mode_asked: NormMode | None = None
    unmapped: str = ""
    passes: int = 0
    leading: ExtremeEigenvalues | None = None

    @property
    def model(self) -> nn.Module:
        """The model."""
        return self.problem.model

    @property
    def batches(self) -> Sequence[Batch]:
        """The data, as a sequence."""
        given: Any = self.problem.batches
        return given

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self.problem.criterion

    @property
    def norm_mode(self) -> NormMode:
        """Statistics that normalisation layers use."""
        return self.problem.mode

    @property
    def seed(self) -> int:
        """Seed of all random numbers."""
        return self.problem.seed

    @property
    def batch(self) -> Batch:
        """The first batch."""
        return self.batches[0]

    @cached_property
    def samples(self) -> int:
        """Samples in the first batch, 1 if it cannot be split into samples."""
        return samples_in(self.batch) or 1

    @cached_property
    def can_be_cut(self) -> bool:
        """Whether model and loss run on a part of the first batch."""
        return can_be_cut(self.problem, self.batch)

    @cached_property
    def dtype(self) -> torch.dtype:
        """Type of the parameters."""
        real = [p.dtype for p in self.model.parameters() if p.is_floating_point()]
        return real[0] if real else torch.get_default_dtype()

    @property
    def rounding(self) -> float:
        """Relative rounding error of a number without another error.

        By choice, 16 times the machine epsilon of the model's dtype.
        """
        return 16 * torch.finfo(self.dtype).eps

    @cached_property
    def norm_layers(self) -> dict[str, tuple[str, ...]]:
        """Names of norm layers by their mode, under ``as_is``."""
        return norm_layers_as_is(self.model, self.norm_mode)

    def first(self, samples: int) -> Batch:
        """Return at most this many samples of the first batch."""
        if samples >= self.samples or not self.can_be_cut:
            return self.batch
        return slice_batch(self.batch, 0, samples)

    @cached_property
    def block_map(self) -> BlockMap:
        """The map, from one recorded pass of a few samples; empty if that failed."""
        try:
            return block_map_of(self.model, self.first(_MAPPED))
        except FOREIGN as failed:
            if (called := as_called(self.problem, self.batch)) is not None:
                with suppress(*FOREIGN):
                    return block_map_of(self.model, called)
            self.unmapped = f"no map could be made, for {error_text(failed)}"
            self.unsupported.append(f"the model: {self.unmapped}")
            return empty_block_map()

    def on(self, samples: int) -> Problem:
        """Return the problem of at most this many samples of the first batch."""
        return replace(self.problem, batches=self.first(samples))

    @property
    def first_pass(self) -> FirstPass:
        """One gradient pass of the whole first batch."""
        if isinstance(self._first_pass, Exception):
            raise self._first_pass
        return self._first_pass

    @cached_property
    def _first_pass(self) -> FirstPass | Exception:
        """The pass, or its error, so that not every measure tries it again."""
        problem, self.passes = self.on(self.samples), self.passes + 1
        try:
            return run_first_pass(problem, self.batch, block_map=self.block_map)
        except OtherWayError as failed:
            self.unsupported.append(f"the model: no signals by depth, for {failed}")
            return run_first_pass(problem, self.batch, block_map=empty_block_map())
        except FOREIGN as failed:
            return failed

    @cached_property
    def graph_error(self) -> float:
        """Relative rounding error of a product with the Hessian, 0 for float64.

        One product along the gradient of a few samples is compared with float64. If
        the model cannot be copied to float64, half the digits are assumed; if it draws
        random numbers, which may be others in float64, at most half.
        """
        if self.dtype == torch.float64:
            return 0.0
        self.passes += 3
        try:
            error = self._rounding_of_a_product(_COMPARED)
        except FOREIGN:  # a loss that cannot be cut, such as one of pairs of samples
            error = self._rounding_of_a_product(self.samples)
        draws = self.problem.randomness == "fixed"
        return min(error, math.sqrt(torch.finfo(self.dtype).eps)) if draws else error

    def _rounding_of_a_product(self, samples: int) -> float:
        problem, same = self.on(samples), self.first(samples)
        vector = _flat_gradient(problem, same)
        with Hessian(problem) as operator:
            ours = operator.matvec(vector)
        try:
            finer = copy.deepcopy(self.model).double()
            finer = replace(problem, model=finer, batches=tree_map(_double, same))
            with Hessian(finer) as operator:
                exact = operator.matvec(vector.double())
        except (TheodoliteError, RuntimeError, TypeError, ValueError):
            return math.sqrt(torch.finfo(ours.dtype).eps)
        size = float(exact.norm())
        return float((ours.double() - exact).norm()) / size if size else 0.0


def targets_in(batch: Batch) -> Any:
    """Return the targets of a pair, or the ``labels`` of a mapping, else None."""
    if isinstance(batch, Mapping):
        return batch.get("labels")
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    return batch[1] if paired else None


def logits_in(outputs: Any) -> Tensor:
    """Return the tensor among a model's outputs that is most likely the logits.

    This is the one named ``logits``, else the first real tensor that is no scalar.

    Raises:
        MeasurementError: There is none.
    """
    named = (
        outputs if isinstance(outputs, Mapping) else getattr(outputs, "__dict__", {})
    )
    if isinstance(named, Mapping) and isinstance(logits := named.get("logits"), Tensor):
        return logits
    for tensor in real_tensors(outputs):
        if tensor.ndim:
            return tensor
    raise MeasurementError(
        f"the model returned a {type(outputs).__name__} without a tensor of real "
        "numbers: wrap it so that it returns one"
    )


def _double(leaf: Any) -> Any:
    real = isinstance(leaf, Tensor) and leaf.is_floating_point()
    return leaf.double() if real else leaf


def _flat_gradient(problem: Problem, batch: Batch) -> Tensor:
    """Return the gradient by all parameters that require one, as one vector."""
    model = problem.model
    with opened(model, careful=False) as before:
        leaves = [p for p in model.parameters() if p.requires_grad]
        before.lend_buffers()
        apply_norm_mode(model, problem.mode, lambda: run_model(model, batch))
        value = evaluate(model, batch, problem.criterion)
        grads = torch.autograd.grad(value, leaves, allow_unused=True)
    pairs = zip(leaves, grads, strict=True)
    flat = [(torch.zeros_like(p) if g is None else g).reshape(-1) for p, g in pairs]
    return torch.cat(flat).detach()
