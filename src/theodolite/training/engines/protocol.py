r"""The protocol of engines, which train grids faster than the plain loop.

An engine holds one blueprint's shape and the data, and updates a *stack* of points
(seeds, rates, initialisations of equal shape) by plain gradient descent on the half
mean square $L = \frac{1}{2m}\sum_i \lVert f(x_i) - y_i \rVert^2$. It keeps no state:
weights and velocities belong to the caller and are changed in place.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from theodolite.core import ConfigError, ShortcutBlueprint


def linear_or_relu(blueprint: ShortcutBlueprint) -> bool:
    """Return whether a network has no biases and at most ReLU at mid.

    Example:
        >>> [linear_or_relu(ShortcutBlueprint(width=4, depth=2, mid=mid))
        ...  for mid in ("relu", "tanh")]
        [True, False]
    """
    outside = (blueprint.pre, blueprint.post) == ("identity", "identity")
    return outside and blueprint.mid in ("identity", "relu") and not blueprint.bias


class Rule(NamedTuple):
    """How each point of a stack moves, and when it stops.

    Before each update a point's loss is compared: at or below its ``floor``, or not at
    or below its ``ceiling`` (so also at NaN), the point stops, and stays as it is.
    """

    rates: np.ndarray  # learning rate of every point and step, shape (points, steps)
    momentum: np.ndarray  # momentum of every point, shape (points,)
    weight_decay: np.ndarray  # weight decay of every point
    floor: np.ndarray  # loss at or below which a point stops; -inf never stops
    ceiling: np.ndarray  # loss above which a point stops

    @classmethod
    def of(cls, rates: Any, **per_point: Any) -> "Rule":
        """Return a rule as kernels take it; one number counts for all points.

        Args:
            rates: Learning rates, shape (points, steps).
            **per_point: Any of the other attributes, a number or one per point.
        """
        rates = _writable(rates)
        if rates.ndim != 2:
            raise ConfigError(
                f"rates of shape {rates.shape}: pass them as (points, steps)"
            )
        numbers: dict[str, Any] = {
            "momentum": 0.0, "weight_decay": 0.0, "floor": -np.inf, "ceiling": np.inf,
        } | per_point  # fmt: skip
        for name, value in numbers.items():
            if np.shape(value) not in ((), (len(rates),)):
                raise ConfigError(
                    f"{name} of shape {np.shape(value)} for {len(rates)} points: pass "
                    "one number per point, or one for all"
                )
            numbers[name] = _writable(np.broadcast_to(value, len(rates)))
        return cls(rates, **numbers)


def _writable(values: Any) -> np.ndarray:
    """Return a float64 array of the type that kernels are compiled for.

    For numba a read-only array is another type, and it would compile everything again.
    """
    return np.require(values, np.float64, ["C_CONTIGUOUS", "WRITEABLE"])


class Advance(NamedTuple):
    """Result of one call of :meth:`Engine.advance`, for each point."""

    # Loss before each update, shape (points, steps); NaN where a point took no such
    # step.
    losses: np.ndarray
    taken: np.ndarray  # updates made by each point, shape (points,)
    # Loss at which a point stopped before an update, shape (points,); NaN for points
    # that took all steps.
    stopped: np.ndarray


class Engine(Protocol):
    r"""Updates a stack of points of one shape.

    The update is that of the plain loop, torch's SGD: $g \leftarrow g + \lambda w$,
    $v \leftarrow \mu v + g$, $w \leftarrow w - \eta v$ (velocity zero at the start).
    """

    @property
    def name(self) -> str:
        """Name of the strategy in results, such as ``moments (numba)``."""
        ...

    def place(self, weights: np.ndarray | Sequence[np.ndarray]) -> Any:
        """Return a copy of weights, shape (points, depth, width, width).

        It has the device and the precision of the engine.
        """
        ...

    def fetch(self, weights: Any, point: int) -> np.ndarray:
        """Return one point's weights as float64, shape (depth, width, width)."""
        ...

    def keep(self, weights: Any, points: np.ndarray) -> Any:
        """Return the stack of those points only, in that order."""
        ...

    def losses(self, weights: Any) -> np.ndarray:
        """Return the loss of every point, shape (points,), as float64."""
        ...

    def advance(self, weights: Any, velocity: Any, rule: Rule) -> Advance:
        """Update every point in place, once per step of ``rule`` or until it stops.

        Args:
            weights: What :meth:`place` returned; changed in place.
            velocity: The same shape; changed in place.
            rule: How the points move, and when they stop.
        """
        ...
