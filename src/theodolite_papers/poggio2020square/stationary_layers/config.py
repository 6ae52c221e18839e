"""Sizes, decay and length of training of the networks brought to rest."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

# Linear and ReLU networks under gradient descent, ReLU ones under descent by single
# samples, and networks that are written down rather than trained.
TRAINED = ("linear", "relu", "single_samples")
CONSTRUCTED = "constructed"
INPUTS = 16


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Normalised networks on two classes of digits.

    Attributes:
        samples: Training samples, half of each class.
        depth: Layers L, of 16 inputs and units each.
        decays: Weight decays λ of the sum of squares.
        steps: Steps of gradient descent.
        polish: Further steps of a quasi-Newton method, for linear networks.
        widths: Widths p of the orthogonal matrices.
    """

    samples: int = 40
    depth: int = 3
    decays: tuple[float, ...] = (0.1,)
    steps: int = 1500
    polish: int = 300
    widths: tuple[int, ...] = (2, 3, 8)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth < 3:
            raise ConfigError(
                f"depth is {self.depth}: pass 3 or more, so that hidden layers can be "
                "compared with one another"
            )
        if min(self.decays) <= 0:
            raise ConfigError(
                f"decays are {self.decays}: pass positive ones, without which nothing "
                "is said of the layers"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units from the inputs to the output."""
        return (INPUTS,) * self.depth + (1,)


PRESETS = {
    "smoke": Config(n_seeds=3, steps=700),
    "quick": Config(n_seeds=5, steps=1000),
    "paper": Config(n_seeds=10, decays=(0.1, 0.01), steps=20_000, polish=3000),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """A cell a kind of training and decay, and one of written-down networks."""
    trained = [{"kind": k, "decay": d} for d in config.decays for k in TRAINED]
    return [*trained, {"kind": CONSTRUCTED, "decay": 0.0}]
