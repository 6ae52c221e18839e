from .engines.contract import Advance as Advance
from .engines.contract import Engine as Engine
from .engines.fused import FusedEngine as FusedEngine
from .engines.moments import MomentsEngine as MomentsEngine
from .engines.stacked.engine import StackedEngine as StackedEngine
from .engines.strategies import STRATEGIES as STRATEGIES
from .grid.grid import GridWarning as GridWarning
from .grid.grid import train_grid as train_grid
from .grid.rates import BestRate as BestRate
from .grid.rates import RateSearch as RateSearch
from .grid.rates import best_rates as best_rates
from .grid.rates import search_rates as search_rates
from .grid.result import Grid as Grid
from .images.convolutional import train_many as train_many
from .images.recipe import Images as Images
from .images.recipe import Recipe as Recipe
from .images.recipe import Trained as Trained
from .loop.descent import Descent as Descent
from .loop.loop import DIVERGENCE as DIVERGENCE
from .loop.loop import train as train
from .loop.trajectory import Trajectory as Trajectory
from .probes.callbacks.lightning import lightning_callback as lightning_callback
from .probes.callbacks.transformers import (
    transformers_callback as transformers_callback,
)
from .probes.probes import Probe as Probe
from .probes.probes import ProbeWarning as ProbeWarning
from .probes.probes import Snapshot as Snapshot
from .probes.schedules import AtLosses as AtLosses
from .probes.schedules import AtSteps as AtSteps
from .probes.schedules import Every as Every
from .probes.schedules import LogSpaced as LogSpaced
from .probes.schedules import When as When
from .probes.watching import Watcher as Watcher
