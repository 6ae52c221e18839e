"""Tasks, methods and settings that are compared."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError
from theodolite.studies import StudyConfig

# Dataset, classes, and number of training samples; validation has the same number.
TASKS = {
    "digits, 2 classes": ("digits", 2, 80),
    "digits, 10 classes": ("digits", 10, 400),
    "mnist5k, 2 classes": ("mnist5k", 2, 200),
    "mnist5k, 10 classes": ("mnist5k", 10, 1000),
}
PAIR = (3, 8)  # the two classes
# decay: batch norm and weight decay, as in the paper. The others move directions on
# spheres and have no decay: with batch norm and a norm that grows or is held, or
# without batch norm and a norm that grows.
METHODS = ("decay", "grown", "held", "bare")
BATCH_NORMED = ("decay", "grown", "held")
# Norm of every layer at the start: the smallest and the largest of figures 1 to 5, each
# with other directions.
STARTS = (0.1, 5.0)
LAYERS, BATCH, MOMENTUM = 4, 100, 0.9
GROWTH = 100.0  # a norm grows by this factor in the first half of training
COURSE = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)  # shares of training at which norms are read


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Classifiers of four layers on four tasks, by four methods."""

    width: int = 64  # units of hidden layers
    steps: int = 500  # steps of training
    # Learning rates under weight decay; 0.1 in the paper.
    decay_rates: tuple[float, ...] = (0.03, 0.1)
    # Weight decays of the mean loss; 0.01 in the paper.
    decays: tuple[float, ...] = (0.003, 0.01, 0.03)
    # Learning rates of directions behind batch norms.
    sphere_rates: tuple[float, ...] = (0.01, 0.03)
    # $\rho$ of the last layer behind batch norms, at the end.
    norms: tuple[float, ...] = (0.25, 0.5, 1.0)
    # Learning rates of directions without batch norms.
    bare_rates: tuple[float, ...] = (0.003, 0.01)
    # $\rho$ of all layers without batch norms at the end, for two classes; four times
    # that for ten.
    bare_norms: tuple[float, ...] = (100.0, 400.0, 1600.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("width", "steps"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: pass 1 or more")

    def settings(self, method: str, classes: int) -> list[tuple[float, float]]:
        """Return the rates, each with every decay or norm, that a method may use."""
        if method == "decay":
            rates, knobs = self.decay_rates, self.decays
        elif method == "bare":
            factor = 1.0 if classes == 2 else 4.0
            rates, knobs = self.bare_rates, tuple(factor * n for n in self.bare_norms)
        else:
            rates, knobs = self.sphere_rates, self.norms
        return [(rate, knob) for rate in rates for knob in knobs]


_ONE: dict[str, Any] = {
    "decay_rates": (0.1,),
    "decays": (0.01,),
    "sphere_rates": (0.03,),
    "norms": (0.5,),
    "bare_rates": (0.003,),
    "bare_norms": (400.0,),
}
PRESETS = {
    "smoke": Config(n_seeds=2, width=16, steps=40, **_ONE),
    "quick": Config(n_seeds=3, steps=150, **_ONE, committed=True),
    "paper": Config(n_seeds=6),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per task, method and split of the data."""
    return [
        {"task": task, "method": method, "trial": trial}
        for task in TASKS
        for method in METHODS
        for trial in config.seeds
    ]
