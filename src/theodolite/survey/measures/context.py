"""State shared by all measures of one survey: the model, its data, and the effort."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from theodolite.anatomy import OpenedModel, opened_model, returned_tensors
from theodolite.core import FOREIGN, MeasurementError
from theodolite.instruments import (
    Batch,
    ExtremeEigenvalues,
    Problem,
    extreme_eigenvalues,
)

# Samples on which products are compared with finer arithmetic, and products.
_COMPARED, _FEW_PRODUCTS = 4, 3
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
        """Rounding error of a product with the Hessian, relative to it; 0 for float64.

        It is measured on a few samples, or on all where they cannot be cut. If there
        is nothing to compare with, half the digits are assumed.
        """
        if self.net.dtype == torch.float64:
            return 0.0
        try:
            error = self._rounding(_COMPARED)
        except FOREIGN:  # a loss that cannot be cut, such as one of pairs of samples
            error = self._rounding(self.net.samples)
        return error or math.sqrt(torch.finfo(self.net.dtype).eps)

    def _rounding(self, samples: int) -> float:
        reading = extreme_eigenvalues(
            self.net.on(samples),
            tol=0.1,
            max_matvecs=_FEW_PRODUCTS,
            method="products",
        )
        self.net.passes += reading.cost.passes
        return reading.graph_error


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
