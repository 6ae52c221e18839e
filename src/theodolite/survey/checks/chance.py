"""The loss of the best answer that ignores the inputs."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from theodolite.instruments import Batch, Loss

from .trial_steps import loss_of

# Numbers that are fitted at most, and evaluations of the loss: our choice.
_LARGEST, _EVALUATIONS = 2**18, 60


class _Constant(nn.Module):
    """Gives each sample the same outputs, which are learned."""

    def __init__(self, outputs: Any) -> None:
        super().__init__()
        self.learned = nn.ParameterList()
        self._outputs = tree_map(self._learned, outputs)

    def _learned(self, part: Any) -> Any:
        if not isinstance(part, Tensor):
            return part
        part = part.detach()
        if not part.ndim or not part.is_floating_point():
            return part
        self.learned.append(nn.Parameter(part.mean(0, keepdim=True)))
        return _Place(len(self.learned) - 1, len(part))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the learned outputs for as many samples as are given."""
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        length = len(given[0]) if given and given[0].ndim else None

        def spread(part: Any) -> Any:
            if not isinstance(part, _Place):
                return part
            one = self.learned[part.index]
            return one.expand(length or part.length, *one.shape[1:])

        return tree_map(spread, self._outputs)


class _Place:
    def __init__(self, index: int, length: int) -> None:
        self.index, self.length = index, length


def best_constant(outputs: Any, batches: Sequence[Batch], loss: Loss) -> float | None:
    """Return the least loss of outputs that are the same for every sample.

    Args:
        outputs: What the model returned, for its shapes.
        batches: Batches whose mean loss is lowered.
        loss: The training loss.

    Returns:
        The loss, or None if the loss needs more than a model that can be called.
    """
    model = _Constant(outputs)
    if not 0 < sum(p.numel() for p in model.parameters()) <= _LARGEST:
        return None
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=_EVALUATIONS, history_size=8,
        line_search_fn="strong_wolfe",
    )  # fmt: skip
    values = [math.inf]

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = torch.stack([loss_of(model, b, loss) for b in batches]).mean()
        value.backward()
        values.append(float(value.detach()))
        return value

    try:
        optimizer.step(closure)  # pyright: ignore
    except Exception:  # of a loss that needs more of the model
        return None
    least = min(v for v in values if not math.isnan(v))
    return least if math.isfinite(least) else None
