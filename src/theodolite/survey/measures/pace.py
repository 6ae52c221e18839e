"""How long passes take, and how far rounding is from what they compute."""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from theodolite.core import NormMode, TheodoliteError
from theodolite.instruments import Batch, Hessian, Loss

from .gradients import flat_gradient, settle

# Times that a step of Lanczos takes that, over bases of a few vectors: measured.
_STEPS = 3.0


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What passes take, as a line in the number of samples.

    Attributes:
        base: Seconds of a gradient of no samples.
        slope: Seconds a sample adds.
        product: Gradients that a product with the Hessian takes.
        step: Seconds that a step of Lanczos takes besides its product.
    """

    base: float
    slope: float
    product: float
    step: float = 0.0

    def gradient_s(self, samples: int) -> float:
        """Return the seconds of a gradient of some samples."""
        return self.base + self.slope * samples


def pace_of(
    model: nn.Module,
    batch: Batch,
    *,
    loss: Loss,
    norm_mode: NormMode,
    samples: int,
    many: int,
    many_s: float,
) -> Pace:
    """Time a gradient and a product on a few samples.

    Args:
        model: The model.
        batch: A few samples.
        loss: What is differentiated.
        norm_mode: Statistics that normalisation layers use.
        samples: How many they are.
        many: Samples of a gradient that was timed before.
        many_s: What that took.
    """
    given: dict[str, Any] = {"loss": loss, "norm_mode": norm_mode}
    least = min(_seconds(flat_gradient, model, batch, **given) for _ in range(2))
    more, each = many - samples, least / samples
    slope = min(max(many_s - least, 0.0) / more, each) if more > 0 else each
    with Hessian(model, batch, **given) as operator:
        vector = torch.ones(
            operator.shape[1], dtype=operator.dtype, device=operator.device
        )
        operator.matvec(vector)  # makes the graph
        product = _seconds(operator.matvec, vector)
        step = _STEPS * _seconds(_passed_over, vector)
    base = max(least - samples * slope, 0.0)
    return Pace(base=base, slope=slope, product=product / least, step=step)


def rounding_of_products(
    model: nn.Module, batch: Batch, *, loss: Loss, norm_mode: NormMode
) -> float:
    """Return how far a product with the Hessian is from float64, relative to it.

    From one product along the gradient. If the model cannot be copied to float64: half
    the digits of its dtype.
    """
    given: dict[str, Any] = {"loss": loss, "norm_mode": norm_mode}
    vector = flat_gradient(model, batch, **given)
    with Hessian(model, batch, **given) as operator:
        ours = operator.matvec(vector)
    try:
        finer, same = copy.deepcopy(model).double(), tree_map(_double, batch)
        with Hessian(finer, same, **given) as operator:
            theirs = operator.matvec(vector.double())
    except (TheodoliteError, RuntimeError, TypeError, ValueError):
        return math.sqrt(torch.finfo(ours.dtype).eps)
    size = float(theirs.norm())
    return float((ours.double() - theirs).norm()) / size if size else 0.0


def _passed_over(vector: Tensor) -> Tensor:
    """Do some of what a step of Lanczos does with a vector."""
    rest = vector.clone()
    bool(torch.isfinite(rest).all())
    rest -= 0.5 * rest
    return rest.norm()


def _double(leaf: Any) -> Any:
    real = isinstance(leaf, Tensor) and leaf.is_floating_point()
    return leaf.double() if real else leaf


def _seconds(call: Callable[..., Tensor], *args: Any, **kwargs: Any) -> float:
    start = time.perf_counter()
    settle(call(*args, **kwargs).device)
    return time.perf_counter() - start
