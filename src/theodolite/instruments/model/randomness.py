"""Draw the same random numbers in every pass, or notice that any are drawn."""

import random
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ConfigError, MeasurementError, unknown_name
from theodolite.instruments.model.preservation import random_state

Randomness = Literal["refuse", "fixed"]


def check_randomness(randomness: str) -> None:
    """Refuse an unknown way with randomness."""
    if randomness not in ("refuse", "fixed"):
        raise unknown_name("randomness", randomness, ("refuse", "fixed"))


def reseed(seed: int) -> None:
    """Seed torch, NumPy and Python; to be undone by whoever preserves their states."""
    if not 0 <= seed < 2**63:
        raise ConfigError(f"seed {seed} is not a whole number of 63 bits: try 0")
    # Not torch.manual_seed, which would leave a seed behind for CUDA's first use.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 — the global state a model may use
    random.seed(seed)


class Draws:
    """Tells whether random numbers were drawn since it was made."""

    def __init__(self) -> None:
        self._before = random_state()

    def happened(self) -> bool:
        """Compare the states with those at the start."""
        return _plain(self._before) != _plain(random_state())


def check_repeats(first: Tensor, second: Tensor) -> None:
    """Refuse a model of which two passes from the same state and seed differ."""
    same = first.shape == second.shape
    if same and first.numel():
        # Kernels that add in any order differ by rounding, which is no randomness.
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
