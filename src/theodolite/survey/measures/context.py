"""State shared by all measures of one survey: the model, its data, and the effort."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils._pytree import tree_map

from theodolite.anatomy import OpenedModel, opened_model, returned_tensors
from theodolite.core import FOREIGN, MeasurementError, TheodoliteError
from theodolite.instruments import (
    Batch,
    ExtremeEigenvalues,
    Hessian,
    Problem,
    apply_norm_mode,
    evaluate,
    opened,
    run_model,
)

# Samples on which products are compared with finer arithmetic.
_COMPARED = 4
# A product with the Hessian in gradients, its graph kept: two backward passes, and
# vectors of Lanczos.
PRODUCT = 2.0


@dataclass(kw_only=True, eq=False)
class SurveyContext:
    """A model opened for a survey.

    Attributes:
        net: The model and its data, and what was seen of them.
        effort: Gradients that the survey may compute.
        optimizer: The optimiser in use, if one was given.
        step: The user's own training step, if one was given.
        labels_known: Whether targets are real, not made up.
        leading: Ends of the Hessian's spectrum, once measured.
    """

    net: OpenedModel
    effort: float = 400.0
    optimizer: Optimizer | None = None
    step: Callable[[Batch], Any] | None = None
    labels_known: bool = True
    leading: ExtremeEigenvalues | None = None

    @property
    def rounding(self) -> float:
        """Relative rounding error of a number without another error.

        By choice, 16 times the machine epsilon of the model's dtype.
        """
        return 16 * torch.finfo(self.net.dtype).eps

    @cached_property
    def graph_error(self) -> float:
        """Relative rounding error of a product with the Hessian, 0 for float64.

        One product along the gradient of a few samples is compared with float64. If
        the model cannot be copied to float64, half the digits are assumed; if it draws
        random numbers, which may be others in float64, at most half.
        """
        if self.net.dtype == torch.float64:
            return 0.0
        self.net.passes += 3
        try:
            error = self._rounding_of_a_product(_COMPARED)
        except FOREIGN:  # a loss that cannot be cut, such as one of pairs of samples
            error = self._rounding_of_a_product(self.net.samples)
        draws = self.net.problem.randomness == "fixed"
        return (
            min(error, math.sqrt(torch.finfo(self.net.dtype).eps)) if draws else error
        )

    def _rounding_of_a_product(self, samples: int) -> float:
        problem, same = self.net.on(samples), self.net.first(samples)
        vector = _flat_gradient(problem, same)
        with Hessian(problem) as operator:
            ours = operator.matvec(vector)
        try:
            finer = copy.deepcopy(self.net.model).double()
            finer = replace(problem, model=finer, batches=tree_map(_double, same))
            with Hessian(finer) as operator:
                exact = operator.matvec(vector.double())
        except (TheodoliteError, RuntimeError, TypeError, ValueError):
            return math.sqrt(torch.finfo(ours.dtype).eps)
        size = float(exact.norm())
        return float((ours.double() - exact).norm()) / size if size else 0.0


@contextmanager
def opened_context(problem: Problem, **settings: Any) -> Iterator[SurveyContext]:
    """Open a model for all measures; settings are those of the context."""
    with opened_model(problem) as held:
        yield SurveyContext(net=held, **settings)


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
    for tensor in returned_tensors(outputs):
        if tensor.ndim and tensor.is_floating_point():
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
