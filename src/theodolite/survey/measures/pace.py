"""How long passes take, and how large their rounding error is."""

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

# A Lanczos step takes this many times _passed_over, for a few basis vectors: measured.
_STEPS = 3.0


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Time of passes, as a linear function of the number of samples.

    Attributes:
        base: Seconds of a gradient of 0 samples.
        slope: Additional seconds per sample.
        product: Time of a product with the Hessian, in gradients.
        step: Seconds of a Lanczos step without its product.
    """

    base: float
    slope: float
    product: float
    step: float = 0.0

    def gradient_s(self, samples: int) -> float:
        """Return the seconds of a gradient of this many samples."""
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
        samples: Number of samples in ``batch``.
        many: Number of samples of a gradient that was timed before.
        many_s: Seconds of that gradient.
    """
    given: dict[str, Any] = {"loss": loss, "norm_mode": norm_mode}
    least = min(_seconds(flat_gradient, model, batch, **given) for _ in range(2))
    more, each = many - samples, least / samples
    slope = min(max(many_s - least, 0.0) / more, each) if more > 0 else each
    with Hessian(model, batch, **given) as operator:
        vector = torch.ones(
            operator.shape[1], dtype=operator.torch_dtype, device=operator.device
        )
        operator.matvec(vector)  # makes the graph
        product = _seconds(operator.matvec, vector)
        step = _STEPS * _seconds(_passed_over, vector)
    base = max(least - samples * slope, 0.0)
    return Pace(base=base, slope=slope, product=product / least, step=step)


def rounding_of_products(
    model: nn.Module, batch: Batch, *, loss: Loss, norm_mode: NormMode
) -> float:
    """Return the relative error of a product with the Hessian, compared with float64.

    One product along the gradient is compared. If the model cannot be copied to
    float64, half the digits of its dtype are assumed.
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
    """Do a part of the vector operations of a Lanczos step, to time them."""
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
