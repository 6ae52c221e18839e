"""Random inputs of the right shape for a model without data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from theodolite.anatomy import returned_tensors
from theodolite.core import SubjectError, error_text, free_memory
from theodolite.instruments import preserve

from .first_layer import Wanted, candidates, required_arguments

# Most inputs to try; a model that accepts none of them needs something else.
_MOST_TRIALS = 64


@dataclass(frozen=True)
class Found:
    """Inputs that a model accepts.

    Attributes:
        wanted: Their kind.
        name: Keyword of the inputs, if the model takes them by name.
        outputs: The model's outputs for two samples.
    """

    wanted: Wanted
    name: str
    outputs: Any


def find_inputs(
    model: nn.Module, shape: tuple[int, ...] | None = None, *, seed: int = 0
) -> Found:
    """Return inputs that a model accepts, by trying what its first layers suggest.

    Args:
        model: The model; not changed.
        shape: Shape of one sample, if known.
        seed: Seed of the inputs.

    Raises:
        SubjectError: No inputs were found; the message says what to pass.
    """
    check_model(model)
    names = required_arguments(model)
    if len(names) > 1:
        raise SubjectError(
            f"the model wants {len(names)} inputs ({', '.join(names)}), which cannot "
            "be made up: pass batches of them, dicts by these names, from Python"
        )
    tried: list[str] = []
    last: BaseException | None = None
    unbounded: Found | None = None
    kinds = [Wanted(shape)] if shape else candidates(model)
    for wanted in kinds:
        if len(tried) == _MOST_TRIALS:
            break
        tried.append(str(wanted))
        try:
            outputs = run_once(model, drawn(wanted, 2, model, seed))
        except Exception as error:
            last = last or error
            continue
        whole = _of_two(outputs)
        working = Found(wanted, names[0] if names else "", outputs)
        if whole and bool(torch.isfinite(whole[0]).all()):
            return working
        if whole and unbounded is None:
            unbounded = working
    # A model that returns NaN for every input is accepted; the survey reports it.
    if unbounded is not None:
        return unbounded
    raise SubjectError(_advice(model, tried, last))


def check_model(model: nn.Module) -> None:
    """Refuse a model whose parameters hold no data."""
    lazy = [
        n for n, p in model.named_parameters() if isinstance(p, UninitializedParameter)
    ]
    if lazy:
        raise SubjectError(
            f"the parameter {lazy[0]!r} has no shape before a first batch: run the "
            "model on one, then survey it"
        )
    if any(p.is_meta for p in model.parameters()):
        raise SubjectError(
            "the model is on the meta device and has no numbers: build it on the cpu"
        )


def drawn(wanted: Wanted, samples: int, model: nn.Module, seed: int) -> Tensor:
    """Return random samples of a kind, with the dtype and device of a model."""
    generator = torch.Generator().manual_seed(seed)
    size = (samples, *wanted.shape)
    device, dtype = place_of(model)
    if wanted.ids:
        return torch.randint(wanted.ids, size, generator=generator, device="cpu").to(
            device
        )
    return torch.randn(size, generator=generator, device="cpu").to(device, dtype)


def check_room(sample_bytes: int, samples: int) -> None:
    """Refuse to make more samples than memory holds."""
    wanted, free = samples * sample_bytes, free_memory()
    if wanted > free:
        raise SubjectError(
            f"{samples:,} made-up samples take {-(-wanted // 2**30):,} GiB and "
            f"{free / 2**30:,.1f} GiB are free: make smaller batches, or fewer"
        )


def place_of(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device and floating-point dtype of a model."""
    tensors = [*model.parameters(), *model.buffers()]
    real = [t for t in tensors if t.is_floating_point()]
    if not real:
        return torch.device("cpu"), torch.get_default_dtype()
    return real[0].device, real[0].dtype


def run_once(model: nn.Module, inputs: Any) -> Any:
    """Run a model in eval mode without gradients; it is not changed."""
    with preserve(model), torch.no_grad():
        model.eval()
        return model(**inputs) if isinstance(inputs, Mapping) else model(inputs)


def _of_two(outputs: Any) -> list[Tensor]:
    """Return the outputs of two samples: one per sample, or one loss."""
    tensors = real_tensors(outputs)
    return [t for t in tensors if t.ndim == 0 or (len(t) == 2 and t.numel())]


def real_tensors(outputs: Any) -> list[Tensor]:
    """List the real tensors in a model's output."""
    return [t for t in returned_tensors(outputs) if t.is_floating_point()]


def _advice(model: nn.Module, tried: list[str], last: BaseException | None) -> str:
    what = type(model).__name__
    if not tried:
        return (
            f"no layer of {what} says which inputs it wants: give the shape of a "
            "sample, such as --shape 3,32,32, or data"
        )
    why = f", the first: {error_text(last)[:200]}" if last is not None else ""
    return (
        f"{what} takes none of {len(tried)} kinds of made-up inputs ({tried[0]}, …"
        f"{why}): give the shape of a sample, such as --shape 3,32,32, or data"
    )
