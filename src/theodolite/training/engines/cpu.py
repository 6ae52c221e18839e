"""What the engines for one processor core share: checks, and stacks in NumPy."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.training.engines.contract import Advance
from theodolite.training.engines.kernels.compiled import Log, Rule, use_numba


class CpuEngine(ABC):
    """An engine whose stacks are NumPy arrays, shape (points, depth, width, width).

    Args:
        blueprint: Shape of the networks.
        x: Inputs, shape (samples, width).
        y: Targets, shape (samples, width).
        dtype: ``float64`` or ``float32``: what weights, data and products are in.
        compiled: None for numba where it can be imported; True demands it; False
            forbids it.
    """

    kind: str

    def __init__(
        self,
        blueprint: ShortcutBlueprint,
        x: np.ndarray,
        y: np.ndarray,
        *,
        dtype: str = "float64",
        compiled: bool | None = None,
    ) -> None:
        if dtype not in ("float64", "float32"):
            raise ConfigError(f"dtype {dtype!r}: pass 'float64' or 'float32'")
        self._check_blueprint(blueprint)
        self.blueprint = blueprint
        self.dtype = np.dtype(dtype)
        self.compiled = use_numba(compiled)
        x, y = self._samples(x, "x"), self._samples(y, "y")
        if len(x) != len(y):
            raise ConfigError(
                f"{len(x)} inputs and {len(y)} targets: pass one target a sample"
            )
        self._prepare(x, y)

    @property
    def name(self) -> str:
        """What the result calls the strategy."""
        return f"{self.kind} ({'numba' if self.compiled else 'torch'})"

    def place(self, weights: np.ndarray | Sequence[np.ndarray]) -> np.ndarray:
        """Return a copy of a stack in the engine's precision."""
        placed = np.array(weights, dtype=self.dtype, order="C")
        self._check_stack(placed, "weights")
        return placed

    def fetch(self, weights: np.ndarray, point: int) -> np.ndarray:
        """Return one point's weights as float64, shape (depth, width, width)."""
        return weights[point].astype(np.float64)

    def keep(self, weights: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return the stack of those points only, in that order."""
        return np.ascontiguousarray(weights[np.asarray(points, dtype=np.intp)])

    def losses(self, weights: np.ndarray) -> np.ndarray:
        """Return the loss of every point, shape (points,), as float64."""
        # Under an infinite floor every point stops at its loss, before any update.
        points = len(weights)
        done = self.advance(
            weights,
            weights,
            np.zeros((points, 1)),
            momentum=np.zeros(points),
            weight_decay=np.zeros(points),
            floor=np.full(points, np.inf),
            ceiling=np.full(points, np.inf),
        )
        return done.stopped

    def advance(
        self,
        weights: np.ndarray,
        velocity: np.ndarray,
        rates: np.ndarray,
        *,
        momentum: np.ndarray,
        weight_decay: np.ndarray,
        floor: np.ndarray,
        ceiling: np.ndarray,
    ) -> Advance:
        """Make up to ``rates.shape[1]`` updates of every point, in place."""
        self._check_stack(weights, "weights")
        self._check_stack(velocity, "velocity")
        points = len(weights)
        rates = _writable(rates)
        if rates.ndim != 2 or len(rates) != points or len(velocity) != points:
            raise ConfigError(
                f"{points} points, velocity of {len(velocity)} and rates of shape "
                f"{rates.shape}: pass one velocity a point and rates (points, steps)"
            )
        rest = [
            _each(name, value, points)
            for name, value in (
                ("momentum", momentum),
                ("weight_decay", weight_decay),
                ("floor", floor),
                ("ceiling", ceiling),
            )
        ]
        log = Log(
            np.full(rates.shape, np.nan),
            np.zeros(points, dtype=np.int64),
            np.full(points, np.nan),
        )
        if rates.size:
            self._advance(weights, velocity, Rule(rates, *rest), log)
        return Advance(*log)

    @abstractmethod
    def _check_blueprint(self, blueprint: ShortcutBlueprint) -> None:
        """Raise for a network that the engine cannot train."""

    @abstractmethod
    def _prepare(self, x: np.ndarray, y: np.ndarray) -> None:
        """Bring the data into the engine's form."""

    @abstractmethod
    def _advance(
        self, weights: np.ndarray, velocity: np.ndarray, rule: Rule, log: Log
    ) -> None:
        """Make the updates, in place, and fill in the log."""

    def _samples(self, values: np.ndarray, name: str) -> np.ndarray:
        values = np.asarray(values)
        width = self.blueprint.width
        if values.ndim != 2 or not len(values) or values.shape[1] != width:
            raise ConfigError(
                f"{name} of shape {values.shape}: this engine wants (samples, {width}) "
                "of the blueprint's width; flatten or whiten the data to it"
            )
        # Rounded as the plain loop rounds its data.
        with np.errstate(over="ignore"):
            values = values.astype(self.dtype)
        if not np.isfinite(values).all():
            raise ConfigError(
                f"{name} has entries that are not finite in {self.dtype}: remove "
                "those samples or rescale the data"
            )
        return values

    def _check_stack(self, stack: np.ndarray, name: str) -> None:
        plan = self.blueprint
        wanted = (plan.depth, plan.width, plan.width)
        fits = isinstance(stack, np.ndarray) and stack.ndim == 4
        if not (fits and stack.shape[1:] == wanted and stack.dtype == self.dtype):
            raise ConfigError(
                f"{name} of shape {np.shape(stack)} and type "
                f"{getattr(stack, 'dtype', type(stack).__name__)}: this engine wants "
                f"(points, {', '.join(map(str, wanted))}) in {self.dtype}; pass them "
                "through place"
            )
        if not stack.flags.c_contiguous:
            raise ConfigError(
                f"{name} are a view with gaps: choose points of a stack by keep"
            )


def _each(name: str, value: np.ndarray, points: int) -> np.ndarray:
    value = _writable(value)
    if value.shape != (points,):
        raise ConfigError(
            f"{name} of shape {value.shape} for {points} points: pass one number "
            "a point"
        )
    return value


def _writable(values: np.ndarray) -> np.ndarray:
    """Return an array of float64 that kernels are compiled for once.

    To numba an array that cannot be written to is of another type, for which it would
    compile everything again.
    """
    return np.require(values, np.float64, ["C_CONTIGUOUS", "WRITEABLE"])
