"""The loss of the best answer that ignores the inputs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._pytree import tree_leaves, tree_map

from theodolite.instruments import Batch, Loss

from .trial_steps import loss_of

# Numbers that are fitted at most, evaluations of the loss, and how far below zero it
# may get relative to its start: our choice.
_LARGEST, _EVALUATIONS, _DEEP = 2**18, 60, 1e3


class _Constant(nn.Module):
    """Gives each sample the same outputs, which are learned."""

    def __init__(self, outputs: Any, *, scores: bool) -> None:
        super().__init__()
        self._scores = scores  # which may have any size
        self.learned = nn.ParameterList()
        self._outputs = tree_map(self._learned, outputs)

    def _learned(self, part: Any) -> Any:
        if not isinstance(part, Tensor):
            return part
        part = part.detach()
        if not part.ndim or not part.is_floating_point():
            return part
        squash, start = _identity, part
        if not self._scores:
            squash, start = _squashed(part)
        self.learned.append(nn.Parameter(start.mean(0, keepdim=True)))
        return _Place(len(self.learned) - 1, len(part), squash)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the learned outputs for as many samples as are given."""
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        length = len(given[0]) if given and given[0].ndim else None

        def spread(part: Any) -> Any:
            if not isinstance(part, _Place):
                return part
            one = part.squash(self.learned[part.index])
            return one.expand(length or part.length, *one.shape[1:])

        return tree_map(spread, self._outputs)


@dataclass(frozen=True, eq=False)
class _Place:
    """Where outputs were: the learned ones of an index, for so many samples."""

    index: int
    length: int
    squash: Callable[[Tensor], Tensor]


def _squashed(made: Tensor) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """Return what keeps constants within the range of outputs, and where they start."""
    for axis in (1, -1) if made.ndim > 1 and min(made.shape) > 1 else ():
        if _is_one(made.exp().sum(axis)):
            return partial(functional.log_softmax, dim=axis), made
        if _is_one(made.sum(axis)) and bool((made >= 0).all()):
            return partial(functional.softmax, dim=axis), made.clamp(min=1e-6).log()
        if _is_one(made.norm(dim=axis)):
            return partial(functional.normalize, dim=axis), made
    if bool(((made >= 0) & (made <= 1)).all()):
        return torch.sigmoid, made.logit(1e-4)
    return _identity, made


def _identity(tensor: Tensor) -> Tensor:
    return tensor


def _is_one(sums: Tensor) -> bool:
    return bool(((sums - 1).abs() < 1e-3).all())


def best_constant(
    outputs: Any, batches: Sequence[Batch], loss: Loss, *, name: str = "mse_loss"
) -> float | None:
    """Return the least loss of outputs that are the same for every sample.

    Args:
        outputs: What the model returned, for its shapes.
        batches: Batches whose mean loss is lowered.
        loss: The training loss.
        name: Name of the loss, if it is one of torch.

    Returns:
        The loss, or None if the loss needs more than a model that can be called.
    """
    model = _Constant(outputs, scores="logits" in name or name == "cross_entropy")
    if not 0 < sum(p.numel() for p in model.parameters()) <= _LARGEST:
        return None
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=_EVALUATIONS, history_size=8,
        line_search_fn="strong_wolfe",
    )  # fmt: skip
    values, slopes = [math.inf], [0.0]

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = torch.stack([loss_of(model, b, loss) for b in batches]).mean()
        value.backward()
        values.append(float(value.detach()))
        grads = [
            p.grad.double().norm() for p in model.parameters() if p.grad is not None
        ]
        slopes.append(math.hypot(*map(float, grads)))
        return value

    try:
        optimizer.step(closure)  # pyright: ignore
        closure()
    except Exception:  # of a loss that needs more of the model
        return None
    finite = [v for v in values if math.isfinite(v)]
    least = min(finite, default=math.inf)
    # A loss without a lower bound has no best answer.
    bounded = bool(finite) and least > -_DEEP * max(1.0, abs(finite[0]))
    flat = max(1e-2 * abs(least), 0.1 * max(slopes))
    bounded = bounded and (bool(name) or slopes[-1] <= flat)
    return least if bounded else None
