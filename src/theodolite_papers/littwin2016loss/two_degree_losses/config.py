"""Degrees, sizes and step of the losses of two degrees."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random losses of two degrees, and small batch-normalised networks.

    Attributes:
        degrees: Pairs of degrees, the lower one first.
        weights: Number of weights, the paper's Λ.
        step: Learning rate of the one step that is made.
        width: Units of the networks in which no deviation is held.
    """

    degrees: tuple[tuple[int, int], ...] = ((2, 3), (2, 5), (3, 4))
    weights: int = 4
    step: float = 1e-4
    width: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        wrong = [pair for pair in self.degrees if not 2 <= pair[0] < pair[1]]
        if wrong:
            raise ConfigError(
                f"degrees {wrong[0]} are no rising pair from 2 up: pass for instance "
                "(2, 3)"
            )


PRESETS = {
    "smoke": Config(n_seeds=6, degrees=((2, 3), (2, 5))),
    "quick": Config(n_seeds=20),
    "paper": Config(n_seeds=200, degrees=((2, 3), (2, 5), (3, 4), (3, 6))),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """A cell a pair of degrees, and one of networks."""
    pairs = [{"shallow": m, "deep": p} for m, p in config.degrees]
    return [*pairs, {"shallow": 0, "deep": 0}]
