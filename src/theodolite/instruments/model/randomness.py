"""Draw the same random numbers in every pass, or detect that any are drawn."""

import random
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ConfigError, MeasurementError

Randomness = Literal["refuse", "fixed"]


def check_randomness(randomness: str) -> None:
    """Refuse an unknown ``randomness`` setting."""


def reseed(seed: int) -> None:
    """Seed torch, NumPy and Python; the caller restores their states."""
    if not 0 <= seed < 2**63:
        raise ConfigError(f"seed {seed} is not a whole number of 63 bits: try 0")
    # Not torch.manual_seed, which would also seed CUDA on its first use.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 — the global state a model may use
    random.seed(seed)


def random_state() -> dict[str, Any]:
    """Return the states of torch, NumPy and Python's generators."""
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if cuda else None,
        "numpy": np.random.get_state(),  # noqa: NPY002 — the global state of others
        "python": random.getstate(),
    }


def restore_random_state(state: dict[str, Any]) -> None:
    """Restore the states that :func:`random_state` returned."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None:
        torch.cuda.set_rng_state_all(state["cuda"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    random.setstate(state["python"])


def generator_state(generator: Any) -> Any:
    """Return the state of one generator of torch, NumPy or Python."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state()
    return generator.getstate()


def restore_generator(generator: Any, state: Any) -> None:
    """Restore the state that :func:`generator_state` returned."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


class Draws:
    """Detects whether random numbers were drawn since it was made."""

    def __init__(self) -> None:
        self._before = random_state()

    def happened(self) -> bool:
        """Return whether the states differ from those at the start."""
        return _plain(self._before) != _plain(random_state())


def check_repeats(first: Tensor, second: Tensor) -> None:
    """Refuse a model if two passes from the same state and seed differ."""
    same = first.shape == second.shape
    if same and first.numel():
        # Kernels that add in any order differ by rounding, which is not randomness.
        limit = 1e4 * torch.finfo(first.dtype).eps * float(first.abs().max())
        same = float((first - second).abs().max()) <= limit
    if not same:
        raise MeasurementError(
            "two passes over the same batch from the same seed differ, so the model "
            "keeps a state, or draws numbers that no seed fixes: switch that off, for "
            "instance with eval()"
        )


def _plain(state: dict[str, Any]) -> list[Any]:
    cuda = [part.tolist() for part in state["cuda"] or ()]
    kind, keys, *rest = state["numpy"]
    numpy = [kind, keys.tolist(), *rest]
    return [state["torch"].tolist(), cuda, numpy, state["python"]]
