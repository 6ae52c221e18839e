r"""What every fast way to train a grid has in common.

An engine holds one blueprint's shape and the data, and moves a *stack* of points
(seeds, rates, initialisations of equal shape) by plain gradient descent on the half
mean square $L = \frac{1}{2m}\sum_i \lVert f(x_i) - y_i \rVert^2$. It keeps no state:
weights and velocities belong to the caller and are changed in place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, eq=False)
class Advance:
    """What one call of :meth:`Engine.advance` did to each point.

    Attributes:
        losses: Loss before each update, shape (points, steps); NaN where a point took
            no such step.
        taken: Updates made by each point, shape (points,).
        stopped: Loss at which a point stopped before an update, shape (points,); NaN
            for points that took all steps.
    """

    losses: np.ndarray
    taken: np.ndarray
    stopped: np.ndarray


class Engine(Protocol):
    r"""A strategy: how a stack of points of one shape is moved.

    The update of the plain loop, torch's SGD: $g \leftarrow g + \lambda w$,
    $v \leftarrow \mu v + g$, $w \leftarrow w - \eta v$ (velocity zero at the start).

    Attributes:
        name: What the result calls the strategy, such as ``moments (numba)``.
    """

    @property
    def name(self) -> str:
        """What the result calls the strategy."""
        ...

    def place(self, weights: np.ndarray | Sequence[np.ndarray]) -> Any:
        """Return a copy of weights, shape (points, depth, width, width), to work on.

        The copy lies where, and in the precision in which, the engine computes.
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

    def advance(
        self,
        weights: Any,
        velocity: Any,
        rates: np.ndarray,
        *,
        momentum: np.ndarray,
        weight_decay: np.ndarray,
        floor: np.ndarray,
        ceiling: np.ndarray,
    ) -> Advance:
        """Make up to ``rates.shape[1]`` updates of every point, in place.

        Before each update a point's loss is compared: at or below its ``floor``, or
        not at or below its ``ceiling`` (so also at NaN), the point stops, and stays
        as it is for the rest of the call.

        Args:
            weights: What :meth:`place` returned; changed in place.
            velocity: The same shape; changed in place.
            rates: Learning rate of every point and step, shape (points, steps).
            momentum: Momentum of every point, shape (points,).
            weight_decay: Weight decay of every point, shape (points,).
            floor: Loss at or below which a point stops; -inf never stops.
            ceiling: Loss above which a point stops.
        """
        ...
