r"""Gradient flow in $(\rho, v)$ of a linear classifier $\rho v^T x$, $\|v\| = 1$.

Square loss $\sum_n (\rho v^T x_n - y_n)^2$ or exponential loss
$\sum_n e^{-\rho y_n v^T x_n}$, with $\lambda\rho^2$. In $w = \rho v$ both are convex,
and strictly so for $\lambda > 0$: the flow then ends at one point, up to the sign that
$(\rho, v)$ and $(-\rho, -v)$ share.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp

from theodolite.core import ConfigError, Numbers, as_numbers

LinearLoss = Literal["square", "exponential"]
_LOSSES = ("square", "exponential")
_NEWTON_STEPS = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearFlow:
    r"""The flow for given data.

    Attributes:
        inputs: One sample per row.
        labels: $y_n$.
        loss: ``"square"`` or ``"exponential"``.
        decay: $\lambda$.

    References:
        Poggio & Liao (2020), appendix E.2, corrected.

    Example:
        >>> flow = LinearFlow(inputs=[[1.0, 0.0]], labels=[1.0], decay=0.25)
        >>> flow.rest()
        array([0.8, 0. ])
    """

    inputs: Numbers
    labels: Numbers
    loss: LinearLoss = "square"
    decay: float = 0.0
    _x: np.ndarray = field(init=False, repr=False)
    _y: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        x = as_numbers("inputs", self.inputs, "samples", "features")
        y = as_numbers("labels", self.labels, len(x))
        if self.decay < 0:
            raise ConfigError(f"decay {self.decay} is negative: pass 0 or more")
        object.__setattr__(self, "_x", x)
        object.__setattr__(self, "_y", y)

    def speed(self, scale: float, direction: Numbers) -> tuple[float, np.ndarray]:
        r"""Return $\dot\rho$ and $\dot v$.

        Square: $\dot\rho = -2\sum\ell_n v^T x_n - 2\lambda\rho$ and $\dot v =
        -2\rho\sum\ell_n(x_n - vv^T x_n)$; exponential: $\dot\rho = \sum\ell_n y_n v^T
        x_n - 2\lambda\rho$ and $\dot v = \rho\sum\ell_n y_n (x_n - vv^T x_n)$.
        """
        v = as_numbers("direction", direction, self._x.shape[1])
        pull = -self._gradient(scale * v)
        along = float(v @ pull)
        return along - 2 * self.decay * scale, scale * (pull - v * along)

    def rest(self) -> np.ndarray:
        r"""Return the weights $w$ of least objective; of least norm for $\lambda = 0$.

        Ridge regression for the square loss, Newton's method for the exponential,
        which has a minimum only for $\lambda > 0$.
        """
        x, y = self._x, self._y
        if self.loss == "square" and self.decay == 0:
            return np.linalg.pinv(x) @ y
        if self.loss == "square":
            gram = x.T @ x + self.decay * np.eye(x.shape[1])
            return np.linalg.solve(gram, x.T @ y)
        if self.decay == 0:
            raise ConfigError(
                "the exponential loss has no least value without decay: pass a "
                "positive decay"
            )
        return self._newton()

    def integrate(
        self,
        scale: float,
        direction: Numbers,
        times: Numbers,
        *,
        tolerance: float = 1e-11,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return norms and unit directions at rising times.

        Args:
            scale: The norm at the start; it may be negative.
            direction: The direction at the start.
            times: Times at which to return the state.
            tolerance: Relative and absolute error per step.
        """
        start = as_numbers("direction", direction, self._x.shape[1])
        asked = as_numbers("times", times, "times")
        length = float(np.linalg.norm(start))
        if not length or len(asked) == 0 or not np.all(np.diff([0.0, *asked]) > 0):
            raise ConfigError(
                f"a direction of length {length:g} and {len(asked)} times: pass one "
                "that is not zero, and times that rise from above zero"
            )

        def field_at(_: float, state: np.ndarray) -> np.ndarray:
            v = state[1:] / np.linalg.norm(state[1:])
            rho, moved = self.speed(float(state[0]), v)
            return np.concatenate([[rho], moved])

        path = solve_ivp(
            field_at,
            (0.0, float(asked[-1])),
            np.concatenate([[scale], start / length]),
            method="DOP853",
            t_eval=asked,
            rtol=tolerance,
            atol=tolerance,
        )
        directions = path.y[1:].T
        return path.y[0], directions / np.linalg.norm(directions, axis=1, keepdims=True)

    def _gradient(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient of the loss without decay, in the weights."""
        out = self._x @ w
        if self.loss == "square":
            return 2 * self._x.T @ (out - self._y)
        return -self._x.T @ (self._y * np.exp(-self._y * out))

    def _newton(self) -> np.ndarray:
        w = np.zeros(self._x.shape[1])
        for _ in range(_NEWTON_STEPS):
            weight = np.exp(-self._y * (self._x @ w))
            hessian = (self._x.T * weight) @ self._x
            hessian += 2 * self.decay * np.eye(len(w))
            step = np.linalg.solve(hessian, self._gradient(w) + 2 * self.decay * w)
            # Damped while far: the loss is self-concordant up to this length.
            w = w - step / (1 + np.linalg.norm(self._x @ step))
            if np.linalg.norm(step) < 1e-15 * (1 + np.linalg.norm(w)):
                break
        return w
