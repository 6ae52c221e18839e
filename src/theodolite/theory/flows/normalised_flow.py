r"""Gradient flow in $(\rho, V_k)$ with unit layers, integrated with error control.

Notation: $f(x) = V_L \sigma(V_{L-1} \cdots \sigma(V_1 x))$ with $\|V_k\| = 1$ and ReLU
$\sigma$; $\ell_n = \rho f_n - y_n$; the objective is $\sum_n \ell_n^2 + \lambda\rho^2$.

The unit sphere repels the flow of Eq 6 wherever the multiplier $\nu$ is negative, so
that the field is read at retracted weights: their length is then neutral, and rounding
does not grow. Between switches of a ReLU the field is smooth; switches are located, and
one that turns the flow back on itself is a kink on which it slides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import DOP853
from scipy.optimize import lsq_linear, root_scalar

from theodolite.core import ConfigError, Numbers, as_numbers

Layers = list[np.ndarray]
_ACROSS = 1e-11  # how far beyond zero a pre-activation counts as switched
_MOST_SWITCHES = 400


@dataclass(frozen=True)
class Kink:
    """Where a flow meets a ReLU that turns it back: from there on it slides.

    Attributes:
        time: Time at which it is met.
        layer: Hidden layer, from 0.
        sample: Sample whose pre-activation vanishes.
        unit: Unit of that layer.
    """

    time: float
    layer: int
    sample: int
    unit: int


@dataclass(frozen=True, eq=False)
class FlowPath:
    r"""A flow at the requested times, up to a kink along which it slides.

    Attributes:
        times: Times that were reached.
        scales: $\rho$ at them.
        outputs: $f_n$ at them, one row per time.
        weights: Normalised layers at the end.
        switches: Number of ReLUs that switched.
        kink: Where the flow began to slide, or None.
        end: The time and scale at which integration ended.
    """

    times: np.ndarray
    scales: np.ndarray
    outputs: np.ndarray
    weights: tuple[np.ndarray, ...]
    switches: int
    kink: Kink | None
    end: tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class NormalisedFlow:
    r"""The flow of Eqs 5 and 6 for given data.

    Attributes:
        inputs: One sample per row.
        labels: $y_n$.
        decay: $\lambda$.
        relu: Whether hidden layers have ReLUs; linear otherwise.

    References:
        Poggio & Liao (2020), equations 3 to 8 and 20 to 23.

    Example:
        >>> flow = NormalisedFlow(inputs=[[1.0, 0.0]], labels=[1.0], decay=0.01)
        >>> start = [np.array([[np.cos(1.4), np.sin(1.4)]]), np.ones((1, 1))]
        >>> path = flow.integrate(0.01, start, [1000.0])
        >>> round(float(path.scales[-1]), 6)
        0.990099
    """

    inputs: Numbers
    labels: Numbers
    decay: float = 0.0
    relu: bool = True
    _x: np.ndarray = field(init=False, repr=False)
    _y: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        x = as_numbers("inputs", self.inputs, "samples", "features")
        y = as_numbers("labels", self.labels, len(x))
        if not np.all(np.abs(y) == 1):
            raise ConfigError("labels are not all 1 or -1: pass one sign per sample")
        object.__setattr__(self, "_x", x)
        object.__setattr__(self, "_y", y)

    def outputs(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        """Return $f_n$ for the given layers, without normalising them."""
        return self._forward(list(weights), self._gates(list(weights)))[0]

    def preactivations(self, weights: Sequence[np.ndarray]) -> Layers:
        """Return the inputs of the ReLUs, one row per sample, layer by layer."""
        return self._forward(list(weights), self._gates(list(weights)))[1]

    def speed(
        self, scale: float, weights: Sequence[np.ndarray]
    ) -> tuple[float, tuple[np.ndarray, ...]]:
        r"""Return $\dot\rho$ and $\dot V_k$ of Eqs 5 and 6 as they are written."""
        layers = list(weights)
        rho, moved = self._speed(scale, layers, self._gates(layers))
        return rho, tuple(moved)

    def integrate(
        self,
        scale: float,
        weights: Sequence[np.ndarray],
        times: Numbers,
        *,
        tolerance: float = 1e-10,
        until_kink: bool = False,
    ) -> FlowPath:
        r"""Follow the flow from $\rho_0$ and layers of norm one.

        Args:
            scale: $\rho_0$.
            weights: $V_k$, from the first to the last; retracted if need be.
            times: Times at which to return the state, positive and increasing.
            tolerance: Relative and absolute error per step.
            until_kink: Whether to return the path up to a kink along which the flow
                slides, rather than to raise.

        Raises:
            ConfigError: The flow slides along a kink before the last time.
        """
        asked = as_numbers("times", times, "times")
        shapes = [np.shape(w) for w in weights]
        if len(asked) == 0 or not np.all(np.diff([0.0, *asked]) > 0):
            raise ConfigError("times do not rise from above zero: pass them in order")
        layers = [np.asarray(w, dtype=np.float64) for w in weights]
        state = np.concatenate([[scale], *(w.ravel() for w in _retract(layers))])
        path = _Walk(self, shapes, asked, tolerance).run(state)
        if path.kink is not None and not until_kink:
            raise ConfigError(
                f"the flow slides along a kink of unit {path.kink.unit} from time "
                f"{path.kink.time:.4g} on, and sliding is not followed: ask for "
                f"earlier times than {asked[-1]:.4g}, or pass until_kink=True for the "
                "path up to there"
            )
        return path

    def residuals(
        self, scale: float, weights: Sequence[np.ndarray], *, near: float = 0.0
    ) -> list[float]:
        r"""Return $\|\dot V_k\|/(2\rho)$ layer by layer, least over gates at kinks.

        A ReLU whose pre-activation is within ``near`` of zero may pass any share of
        the gradient from 0 to 1 (Clarke's subgradient). Shares are chosen by bounded
        least squares for the first layer, of two-layer networks; with ``near`` zero
        this is the residual of Eq 8.
        """
        layers = list(weights)
        gates = self._gates(layers)
        if near > 0 and len(layers) == 2 and self.relu:
            gates = [self._shares(scale, layers, gates[0].astype(float), near)]
        moved = self._speed(scale, layers, gates)[1]
        return [float(np.linalg.norm(v)) / (2 * abs(scale)) for v in moved]

    def _shares(
        self, scale: float, layers: Layers, gates: np.ndarray, near: float
    ) -> np.ndarray:
        z = self._forward(layers, [gates])[1][0]
        open_ = np.argwhere(np.abs(z) < near)
        if not len(open_):
            return gates
        loss = scale * self.outputs(layers) - self._y
        base = gates.copy()
        base[tuple(open_.T)] = 0.0
        projected = self._speed(scale, layers, [base])[1][0].ravel() / (2 * scale)
        columns = []
        for n, j in open_:
            pulled = np.zeros_like(layers[0])
            pulled[j] = loss[n] * layers[1][0, j] * self._x[n]
            pulled -= layers[0] * np.sum(layers[0] * pulled)
            columns.append(-pulled.ravel())
        fit = lsq_linear(np.array(columns).T, -projected, bounds=(0, 1))
        base[tuple(open_.T)] = fit.x
        return base

    def _gates(self, layers: Layers) -> Layers:
        gates: Layers = []
        h = self._x
        for w in layers[:-1]:
            z = h @ w.T
            gates.append(z > 0 if self.relu else np.ones(z.shape, dtype=bool))
            h = z * gates[-1]
        return gates

    def _forward(
        self, layers: Layers, gates: Layers
    ) -> tuple[np.ndarray, Layers, Layers]:
        fed, z = [self._x], []
        for w, gate in zip(layers[:-1], gates, strict=True):
            z.append(fed[-1] @ w.T)
            fed.append(z[-1] * gate)
        return (fed[-1] @ layers[-1].T)[:, 0], z, fed

    def _speed(
        self, scale: float, layers: Layers, gates: Layers
    ) -> tuple[float, Layers]:
        f, _, fed = self._forward(layers, gates)
        loss = scale * f - self._y
        back = loss[:, None]
        moved: Layers = []
        for k in range(len(layers) - 1, -1, -1):
            pull = back.T @ fed[k]  # sum over samples of the loss times df/dV_k
            moved.insert(0, 2 * scale * (layers[k] * (loss @ f) - pull))
            if k:
                back = (back @ layers[k]) * gates[k - 1]
        return -2 * float(loss @ f) - 2 * self.decay * scale, moved


class _Walk:
    """One integration: steps between switches, and what happens at them."""

    def __init__(
        self,
        flow: NormalisedFlow,
        shapes: list[tuple[int, ...]],
        asked: np.ndarray,
        tolerance: float,
    ) -> None:
        self.flow, self.shapes, self.asked = flow, shapes, asked
        self.tolerance, self.kept = tolerance, []
        self.gates: Layers = []

    def layers(self, state: np.ndarray) -> Layers:
        layers, at = [], 1
        for shape in self.shapes:
            size = int(np.prod(shape))
            layers.append(state[at : at + size].reshape(shape))
            at += size
        return _retract(layers)

    def speed(self, _: float, state: np.ndarray) -> np.ndarray:
        rho, moved = self.flow._speed(state[0], self.layers(state), self.gates)
        return np.concatenate([[rho], *(v.ravel() for v in moved)])

    def beyond(self, state: np.ndarray) -> Layers:
        """Return how far each pre-activation is on the wrong side of its gate."""
        z = self.flow._forward(self.layers(state), self.gates)[1]
        return [np.where(g, -v, v) for g, v in zip(self.gates, z, strict=True)]

    def run(self, state: np.ndarray) -> FlowPath:
        self.gates = self.flow._gates(self.layers(state))
        time, switches, kink = 0.0, 0, None
        while time < self.asked[-1] and kink is None:
            time, state, crossed = self.advance(time, state)
            if crossed is None:
                continue
            switches += 1
            layer, sample, unit = crossed
            self.gates[layer][sample, unit] ^= True
            if self.turned_back(state, crossed) or switches >= _MOST_SWITCHES:
                kink = Kink(time, layer, sample, unit)
        rows = self.kept
        return FlowPath(
            times=self.asked[: len(rows)],
            scales=np.array([row[0] for row in rows]),
            outputs=np.array([row[1] for row in rows]),
            weights=tuple(self.layers(state)),
            switches=switches,
            kink=kink,
            end=(time, float(state[0])),
        )

    def advance(
        self, time: float, state: np.ndarray
    ) -> tuple[float, np.ndarray, tuple[int, int, int] | None]:
        """Step until the last time or the first switch."""
        solver = DOP853(
            self.speed,
            time,
            state,
            self.asked[-1],
            rtol=self.tolerance,
            atol=self.tolerance,
        )
        while solver.status == "running":
            before = float(solver.t)
            solver.step()
            dense = solver.dense_output()
            past = self.worst(solver.y)
            if self.flow.relu and past > _ACROSS:
                when = self.crossing(dense, before, float(solver.t))
                self.keep(dense, when)
                return when, dense(when), self.first(dense(when))
            self.keep(dense, solver.t)
        return solver.t, solver.y, None

    def crossing(
        self, dense: Callable[[float], np.ndarray], before: float, after: float
    ) -> float:
        """Return the time at which the first gate becomes wrong."""
        if self.worst(dense(before)) >= _ACROSS:
            return before
        root = root_scalar(
            lambda t: self.worst(dense(t)) - _ACROSS,
            bracket=(before, after),
            xtol=1e-15,
        )
        return float(root.root)

    def keep(self, dense: Callable[[float], np.ndarray], until: float) -> None:
        while len(self.kept) < len(self.asked) and self.asked[len(self.kept)] <= until:
            state = dense(self.asked[len(self.kept)])
            f = self.flow._forward(self.layers(state), self.gates)[0]
            self.kept.append((float(state[0]), f))

    def worst(self, state: np.ndarray) -> float:
        return max((float(v.max()) for v in self.beyond(state)), default=-1.0)

    def first(self, state: np.ndarray) -> tuple[int, int, int]:
        far = self.beyond(state)
        layer = int(np.argmax([v.max() for v in far]))
        sample, unit = np.unravel_index(np.argmax(far[layer]), far[layer].shape)
        return layer, int(sample), int(unit)

    def turned_back(self, state: np.ndarray, crossed: tuple[int, int, int]) -> bool:
        """Return whether the field beyond a switch leads back across it."""
        layer, sample, unit = crossed
        here = self.beyond(state)[layer][sample, unit]
        moved = state + 1e-6 * self.speed(0.0, state)
        return bool(self.beyond(moved)[layer][sample, unit] > here)


def _retract(layers: Layers) -> Layers:
    lengths = [float(np.linalg.norm(w)) for w in layers]
    if not all(lengths):
        raise ConfigError("a layer is zero and has no direction: pass other weights")
    return [w / length for w, length in zip(layers, lengths, strict=True)]
