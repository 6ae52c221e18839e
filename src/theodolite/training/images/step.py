"""One training step of a network, run eagerly or replayed as a CUDA graph.

Small networks on a large GPU wait for kernel launches, not for arithmetic. A graph
holds every kernel of a step, forward, backward and update, and costs one launch.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from .recipe import Images, Recipe

# Sums over lists of tensors in few kernels; torch keeps them under a private name.
_torch: Any = torch
_WARM_UP = 3  # steps before a capture, as torch.cuda.graph wants
_NORMS = (
    nn.modules.batchnorm._NormBase,  # batch and instance norms
    nn.GroupNorm,
    nn.LayerNorm,
    nn.RMSNorm,
)


class Replayable(Protocol):
    """A step that can be replayed as a graph: its tensors stay where they are."""

    def compute(self) -> None:
        """Make one step, in place."""
        ...

    def state(self) -> list[Tensor]:
        """Return every tensor that a step changes."""
        ...


class Step:
    r"""A step of momentum descent on a batch of fixed shape, all in place.

    The update is that of ``torch.optim.SGD``: $g \leftarrow g + \lambda w$,
    $v \leftarrow \mu v + g$, $w \leftarrow w - \eta\,(g + \mu v)$ with Nesterov's
    momentum and $w \leftarrow w - \eta v$ without; no velocity is kept where
    $\mu = 0$. Without ``decay_norms``, $\lambda$ is 0 for parameters of norms. Batch,
    rate, loss and errors are tensors that stay where they are, so that it can be
    captured as a CUDA graph.

    Attributes:
        batch: Raw images to fill before a step.
        labels: Their classes.
        rate: Learning rate, on the device.
        loss: Sum of the losses of the steps since :meth:`restart`.
        wrong: Number of wrong answers since :meth:`restart`.
    """

    def __init__(
        self,
        model: nn.Module,
        images: Images,
        recipe: Recipe,
    ) -> None:
        self.model, size = model, recipe.batch_size
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        moved = self.parameters if recipe.momentum else []
        norms = () if recipe.decay_norms else _NORMS
        exempt = {
            id(p)
            for m in model.modules()
            if isinstance(m, norms)
            for p in m.parameters()
        }
        self.decays = [id(p) not in exempt for p in self.parameters]
        self.velocity = [torch.zeros_like(p) for p in moved]
        first = self.parameters[0]
        self.batch = images.inputs[:size].clone()
        self.labels = images.labels[:size].clone()
        self.centre, self.scale = (
            t.to(first).reshape(1, -1, 1, 1) for t in (images.centre, images.scale)
        )
        self.rate, self.loss = first.new_zeros(()), first.new_zeros(())
        self.wrong = torch.zeros((), dtype=torch.int64, device=first.device)
        self.momentum, self.weight_decay = recipe.momentum, recipe.weight_decay
        self.nesterov, self.half = recipe.nesterov, recipe.precision == "bf16"

    def fill(self, batch: Tensor, labels: Tensor) -> None:
        """Put the next batch in place."""
        self.batch.copy_(batch)
        self.labels.copy_(labels)

    def restart(self) -> None:
        """Begin to count loss and errors from zero."""
        self.loss.zero_()
        self.wrong.zero_()

    def scores(self, batch: Tensor) -> Tensor:
        """Return the network's scores of raw images, in full precision."""
        shape = torch.channels_last if batch.is_cuda else torch.contiguous_format
        images = (batch.to(self.rate.dtype) - self.centre) / self.scale
        images = images.contiguous(memory_format=shape)
        if not self.half:
            return self.model(images)
        # Casts that a cache keeps from another step would be missing in a graph.
        with torch.autocast(batch.device.type, torch.bfloat16, cache_enabled=False):
            return self.model(images).float()

    def compute(self) -> None:
        """Make one step on the batch in place."""
        scores = self.scores(self.batch)
        loss = functional.cross_entropy(scores, self.labels)
        gradients = list(torch.autograd.grad(loss, self.parameters))
        with torch.no_grad():
            self._update(gradients)
            self.loss += loss.detach()
            self.wrong += (scores.argmax(1) != self.labels).sum()

    def _update(self, gradients: list[Tensor]) -> None:
        if self.weight_decay:
            decayed, weights = (
                [t for t, decays in zip(part, self.decays, strict=True) if decays]
                for part in (gradients, self.parameters)
            )
            _torch._foreach_add_(decayed, weights, alpha=self.weight_decay)
        move = gradients
        if self.momentum:
            _torch._foreach_mul_(self.velocity, self.momentum)
            _torch._foreach_add_(self.velocity, gradients)
            if self.nesterov:
                _torch._foreach_add_(gradients, self.velocity, alpha=self.momentum)
            else:
                move = self.velocity
        if self.rate.is_cuda:  # a graph reads the rate where it lies
            _torch._foreach_sub_(self.parameters, _torch._foreach_mul(move, self.rate))
        else:
            _torch._foreach_add_(self.parameters, move, alpha=-float(self.rate))

    def state(self) -> list[Tensor]:
        """Return every tensor that a step changes."""
        moved = [*self.parameters, *self.velocity, *self.model.buffers()]
        return [*moved, self.loss, self.wrong]


def capture(step: Replayable, stream: torch.cuda.Stream) -> Callable[[], None]:
    """Return a function that replays the step as a graph; nothing is trained yet.

    The warm-up that a capture needs moves the weights: they are put back, also where
    the capture fails.
    """
    saved = [tensor.detach().clone() for tensor in step.state()]
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    try:
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                step.compute()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            step.compute()
    finally:
        torch.cuda.synchronize()
        with torch.no_grad():
            for tensor, old in zip(step.state(), saved, strict=True):
                tensor.copy_(old)
        torch.cuda.synchronize()
    return graph.replay
