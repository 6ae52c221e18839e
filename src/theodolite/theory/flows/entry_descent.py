r"""One entry-normalised layer under cross-entropy: descent reaches the infimum.

Notation: $F = AX$ with $A = \mathrm{en}(W)$, $\mathrm{en}(w) = w/\sqrt{\epsilon +
w^2}$ entrywise, $n$ weights; $G(A)$ the mean cross-entropy, convex in $A$, over the
open cube $(-1, 1)^n$; $\ell(W) = G(\mathrm{en}(W))$ and $G^* = \min_{[-1,1]^n} G =
\inf\ell$.

*Flow.* $\dot w = -\mathrm{en}'(w)\,\partial_a G$ and $\mathrm{en}' =
(1-a^2)^{3/2}/\sqrt\epsilon$, so that $\psi''(a)\,\dot a = -\partial_a G$ with $\psi'' =
\epsilon/(1-a^2)^3$: mirror flow of $\psi = \epsilon\,(1/(8(1-a^2)) + \frac38
a\,\mathrm{artanh}\,a)$. For any interior $u$ the divergence $D(u, A) = \psi(u) -
\psi(A) - \psi'(A)\cdot(u - A)$ obeys $\dot D = \nabla G(A)\cdot(u - A) \le G(u) -
G(A)$, and $\ell$ falls, so $\ell_t - G(u) \le D(u, A_0)/t$.

*Descent* with $\eta < 2/\beta$. As a function of $w$, $\Phi = D(u, \mathrm{en}(w))$ has
$\Phi' = (a-u)/\mathrm{en}'$ and $\Phi'' = 1 + (u-a)\,\mathrm{en}''/\mathrm{en}'^2 \le
7 + 6w^2/\epsilon$. A step adds $\eta(u-a)\,\partial_a G$ and at most $\frac12\eta^2
s\,\Phi''(\xi)$ for each weight, $s = (\partial_w\ell)^2$. With $|\partial_a G| \le C$
one has $s^{1/3} \le (C\epsilon)^{2/3}/(\epsilon + w^2)$, hence $\frac12\eta^2
s\,\Phi''(\xi) \le \kappa s^{2/3}$ with $\kappa = \frac{6\eta^2}{\epsilon}
[(C\epsilon)^{2/3} + \eta^2(C^2/\epsilon)^{4/3}]$. Since $\alpha\sum s \le \ell_0 -
\ell^*$ with $\alpha = \eta(1-\beta\eta/2)$, Hölder gives $\sum_{t<T} s^{2/3} \le
(nT)^{1/3}((\ell_0-\ell^*)/\alpha)^{2/3}$, and
$$\ell_T - G(u) \le \frac{D(u, A_0)}{\eta T} + \frac{\kappa n^{1/3}}{\eta}
\Bigl(\frac{\ell_0-\ell^*}{\alpha}\Bigr)^{2/3} T^{-2/3}.$$
With $u$ at distance of order $T^{-1/2}$ from a minimiser this is $O(T^{-1/2})$ from
*any* start. Independence of the data is not used.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from scipy.special import log_softmax

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers

from ..systems.parameterisations import NORMALISED_CURVATURE

_NEARNESS = np.geomspace(1e-9, 1.0, 80)


@dataclass(frozen=True)
class CubeMinimum:
    r"""Least loss over the closed cube.

    Attributes:
        value: $G$ at the minimiser, at least the true minimum.
        error: Bound on the difference: $\max_{u} \nabla G\cdot(A - u)$ over the cube.
        weights: The minimiser, classes by features.
        gradient: $\nabla G$ there.
    """

    value: float
    error: float
    weights: np.ndarray
    gradient: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class EntryDescent:
    r"""Gradient descent and flow of one entry-normalised layer.

    Assumes: one layer, no bias, mean cross-entropy; any data and any start.

    Attributes:
        inputs: One sample per row.
        labels: Class probabilities, one row per sample.
        epsilon: $\epsilon$ of the normalisation.

    References:
        MacDonald, Valmadre, Saratchandran & Lucey (2023), theorem 5.1 for $L = 1$;
        the proof is ours.

    Example:
        >>> layer = EntryDescent(inputs=[[1.0]], labels=[[1.0, 0.0]])
        >>> round(layer.infimum().value, 6)  # log(1 + exp(-2))
        0.126928
        >>> round(layer.rate_constant(1.0), 6)
        0.172629
    """

    inputs: Numbers
    labels: Numbers
    epsilon: float = 1.0
    _x: np.ndarray = field(init=False, repr=False)
    _y: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        x = as_numbers("inputs", self.inputs, "samples", "features")
        y = as_numbers("labels", self.labels, len(x), "classes")
        if not self.epsilon > 0:
            raise ConfigError(
                f"epsilon is {self.epsilon}: entry normalisation is smooth for "
                "positive ones alone, pass one such as 1"
            )
        if np.any(y < 0) or not np.allclose(y.sum(axis=1), 1.0, rtol=0, atol=1e-9):
            raise ConfigError(
                "labels do not sum to 1 in each row: pass class probabilities, such "
                "as one-hot rows"
            )
        object.__setattr__(self, "_x", x)
        object.__setattr__(self, "_y", y)

    @property
    def smoothness(self) -> float:
        r"""Global $\beta$: $\|X\|^2/(2N\epsilon) + \sqrt{2/N}\,c_2\|X\|/\epsilon$.

        $\|D\mathrm{en}\|^2 \le 1/\epsilon$, $\|D^2\mathrm{en}\| \le c_2/\epsilon$ with
        $c_2 = \frac32(\frac45)^{5/2}$; a softmax has curvature at most 1/2, and
        columns $p - y$ are no longer than $\sqrt 2$.
        """
        n, size = len(self._x), float(np.linalg.norm(self._x, 2))
        bent = np.sqrt(2 / n) * NORMALISED_CURVATURE * size
        return float((size**2 / (2 * n) + bent) / self.epsilon)

    def loss(self, matrix: Numbers) -> float:
        """Return $G$ at a matrix of the closed cube."""
        a = self._matrix("matrix", matrix)
        logs = log_softmax(self._x @ a.T, axis=1)
        return float(-np.sum(self._y * logs) / len(self._x))

    def gradient(self, matrix: Numbers) -> np.ndarray:
        r"""Return $\nabla G$, classes by features."""
        a = self._matrix("matrix", matrix)
        softmax = np.exp(log_softmax(self._x @ a.T, axis=1))
        return (softmax - self._y).T @ self._x / len(self._x)

    def infimum(self) -> CubeMinimum:
        r"""Return $\inf\ell$, a convex minimum on a cube, with a bound on its error.

        By convexity $G(A) - G^* \le \sum_{ij}(g_{ij}A_{ij} + |g_{ij}|)$.
        """
        return self._least

    @cached_property
    def _least(self) -> CubeMinimum:
        shape = self._y.shape[1], self._x.shape[1]
        result = minimize(
            lambda flat: self.loss(flat.reshape(shape)),
            np.zeros(shape).ravel(),
            jac=lambda flat: self.gradient(flat.reshape(shape)).ravel(),
            bounds=[(-1.0, 1.0)] * (shape[0] * shape[1]),
            method="L-BFGS-B",
            options={"ftol": 0.0, "gtol": 1e-12, "maxiter": 2000, "maxfun": 20_000},
        )
        a = result.x.reshape(shape)
        g = self.gradient(a)
        missed = float(np.sum(g * a + np.abs(g)))
        return CubeMinimum(self.loss(a), max(missed, 0.0) + 1e-15, a, g)

    def rate_constant(self, rate: float) -> float:
        r"""Return the limit of $\sqrt t\,(\ell_t - \ell^*)$.

        It is $\frac14\sqrt{\epsilon/\eta}\sum_{ij}|g_{ij}|^{1/2}$: near a face
        $\delta = 1 - |a|$ obeys $\dot\delta = -8|g|\delta^3/\epsilon$, so that
        $\delta = \sqrt{\epsilon/(16|g|t)}$, and $|g|\delta$ is left of the loss.

        Assumes: strict complementarity: the minimiser has $|a_{ij}| = 1$ wherever
        $g_{ij} \ne 0$, and $G$ curves along the entries that lie inside.
        """
        _positive("rate", rate)
        g = np.abs(self.infimum().gradient)
        return float(0.25 * np.sqrt(self.epsilon / rate) * np.sqrt(g).sum())

    def integrate(self, weights: Numbers, times: Numbers) -> np.ndarray:
        """Return losses of gradient flow from given weights at rising times."""
        start = self._matrix("weights", weights)
        asked = as_numbers("times", times, "times")
        if len(asked) == 0 or not np.all(np.diff([0.0, *asked]) > 0):
            raise ConfigError(
                f"{len(asked)} times do not rise from above zero: pass some that do"
            )
        eps, shape = self.epsilon, start.shape

        def speed(_: float, flat: np.ndarray) -> np.ndarray:
            w = flat.reshape(shape)
            slope = eps / (eps + w**2) ** 1.5
            return -(slope * self.gradient(w / np.sqrt(eps + w**2))).ravel()

        path = solve_ivp(
            speed,
            (0.0, float(asked[-1])),
            start.ravel(),
            method="LSODA",
            t_eval=asked,
            rtol=1e-9,
            atol=1e-11,
        )
        w = path.y.T.reshape(-1, *shape)
        return np.array([self.loss(one) for one in w / np.sqrt(eps + w**2)])

    def guarantee(self, weights: Numbers, rate: float, steps: int) -> float:
        r"""Return the bound on $\ell_T - \ell^*$ of gradient descent, as derived above.

        Minimised over $u = (1-\delta)A^*$. Needs $\eta < 2/\beta$.
        """
        w = self._matrix("weights", weights)
        _positive("rate", rate)
        steps = as_integer("steps", steps, 1)
        beta, eps = self.smoothness, self.epsilon
        gain = rate * (1 - beta * rate / 2)
        if not gain > 0:
            raise ConfigError(
                f"rate {rate:g} is not below 2/beta = {2 / beta:.4g}: nothing is "
                "guaranteed, pass a smaller one"
            )
        least = self.infimum()
        low = least.value - least.error
        away = [
            self.loss(u) - low + self._divergence(u, w) / (rate * steps)
            for u in ((1 - near) * least.weights for near in _NEARNESS)
        ]
        most = float(np.abs(self._x).sum(axis=0).max()) / len(self._x)
        kappa = 6 * rate**2 / eps
        kappa *= (most * eps) ** (2 / 3) + rate**2 * (most**2 / eps) ** (4 / 3)
        fall = (self.loss(w / np.sqrt(eps + w**2)) - low) / gain
        rest = kappa / rate * w.size ** (1 / 3) * fall ** (2 / 3)
        return float(min(away) + rest * steps ** (-2 / 3))

    def _divergence(self, u: np.ndarray, w: np.ndarray) -> float:
        a, room = w / np.sqrt(self.epsilon + w**2), self.epsilon / (self.epsilon + w**2)
        angle = np.arcsinh(w / np.sqrt(self.epsilon))  # artanh(a), also where a is 1
        slope = a / (4 * room**2) + 3 * a / (8 * room) + 0.375 * angle
        here = 1 / (8 * room) + 0.375 * a * angle
        there = 1 / (8 * (1 - u**2)) + 0.375 * u * np.arctanh(u)
        return float(self.epsilon * np.sum(there - here - slope * (u - a)))

    def _matrix(self, name: str, value: Numbers) -> np.ndarray:
        return as_numbers(name, value, self._y.shape[1], self._x.shape[1])


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ConfigError(f"{name} is {value}: pass a positive one")
