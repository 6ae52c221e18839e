"""The circumstances of a forward pass that will be differentiated twice."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from theodolite.instruments.differentiate.twice import differentiable_twice
from theodolite.instruments.model.objective import Batch, call_model
from theodolite.instruments.model.preservation import preserve

Outputs = Callable[[nn.Module, Batch], Any]


def run_model(model: nn.Module, batch: Batch) -> Any:
    """Call a model on a batch; of a pair, the first part is the inputs."""
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    return call_model(model, batch[0] if paired else batch)


@contextmanager
def running(model: nn.Module) -> Iterator[None]:
    """Preserve the model, and make whatever runs inside differentiable twice.

    Compiled modules run as they were written: compiled code has no second derivative.
    """
    with ExitStack() as stack:
        stack.enter_context(differentiating())
        stack.enter_context(preserve(model))
        stack.enter_context(differentiable_twice(model))
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        own_buffers(model)
        yield


@contextmanager
def differentiating() -> Iterator[None]:
    """Record graphs, whatever mode the caller is in."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def own_buffers(model: nn.Module) -> None:
    """Give the model copies of its buffers, to be put back by ``preserve``.

    A graph then holds the copies, and stays valid when the originals come back.
    """
    for module in model.modules():
        for key, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[key] = buffer.detach().clone()
