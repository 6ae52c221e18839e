"""One plain loop, grids of thousands of runs, and probes on anybody's training."""

from typing import TYPE_CHECKING

from theodolite.core import attach

if TYPE_CHECKING:
    from theodolite.training.convolutional import train_many
    from theodolite.training.convolutional_recipe import Images, Recipe, Trained
    from theodolite.training.descent import Descent
    from theodolite.training.engine import Advance, Engine
    from theodolite.training.fused_engine import FusedEngine
    from theodolite.training.grid import GridWarning, train_grid
    from theodolite.training.grid_result import Grid
    from theodolite.training.lightning_callback import lightning_callback
    from theodolite.training.loop import DIVERGENCE, train
    from theodolite.training.moments_engine import MomentsEngine
    from theodolite.training.probes import Probe, ProbeWarning, Snapshot
    from theodolite.training.rates import (
        BestRate,
        RateSearch,
        best_rates,
        search_rates,
    )
    from theodolite.training.schedules import AtLosses, AtSteps, Every, LogSpaced, When
    from theodolite.training.stacked_engine import StackedEngine
    from theodolite.training.strategies import STRATEGIES
    from theodolite.training.trajectory import Trajectory
    from theodolite.training.transformers_callback import transformers_callback
    from theodolite.training.watching import Watcher

__all__ = [
    "DIVERGENCE",
    "STRATEGIES",
    "Advance",
    "AtLosses",
    "AtSteps",
    "BestRate",
    "Descent",
    "Engine",
    "Every",
    "FusedEngine",
    "Grid",
    "GridWarning",
    "Images",
    "LogSpaced",
    "MomentsEngine",
    "Probe",
    "ProbeWarning",
    "RateSearch",
    "Recipe",
    "Snapshot",
    "StackedEngine",
    "Trained",
    "Trajectory",
    "Watcher",
    "When",
    "best_rates",
    "lightning_callback",
    "search_rates",
    "train",
    "train_grid",
    "train_many",
    "transformers_callback",
]

__getattr__, __dir__, _ = attach(
    __name__,
    {
        "convolutional": ["train_many"],
        "convolutional_recipe": ["Images", "Recipe", "Trained"],
        "descent": ["Descent"],
        "engine": ["Advance", "Engine"],
        "fused_engine": ["FusedEngine"],
        "grid": ["GridWarning", "train_grid"],
        "grid_result": ["Grid"],
        "lightning_callback": ["lightning_callback"],
        "loop": ["DIVERGENCE", "train"],
        "moments_engine": ["MomentsEngine"],
        "probes": ["Probe", "ProbeWarning", "Snapshot"],
        "rates": ["BestRate", "RateSearch", "best_rates", "search_rates"],
        "schedules": ["AtLosses", "AtSteps", "Every", "LogSpaced", "When"],
        "stacked_engine": ["StackedEngine"],
        "strategies": ["STRATEGIES"],
        "trajectory": ["Trajectory"],
        "transformers_callback": ["transformers_callback"],
        "watching": ["Watcher"],
    },
)
