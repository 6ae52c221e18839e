r"""Engines for one processor core: fused tiles of samples, and second moments.

``FusedEngine`` takes some hundred samples at a time through all layers forward and
backward while they are in the cache, and keeps only gradients, $d \times d$ per layer.
The plain loop sends all samples through one layer after the other, so that every layer
reads and writes memory.

``MomentsEngine`` trains deep linear networks on second moments. With
$\Sigma_{XX} = ZZ^\top$, $Z$ square, and $\Sigma_{YX} = CZ^\top$, the half mean square
of $f(x) = Wx$ is $L = L_{opt} + \frac12\lVert WZ - C\rVert^2$: gradient descent on $m$
samples is gradient descent on the $d$ columns of $Z$ with targets $C$. Unlike
$\frac12\mathrm{tr}(W\Sigma_{XX}W^\top - 2W\Sigma_{YX}^\top + \Sigma_{YY})$, nothing
cancels when the loss is small. $Z^\top$ is the triangle of a QR decomposition of the
inputs, so condition numbers are not squared and singular moments need no special case.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from theodolite.core import ConfigError, ShortcutBlueprint

from .kernels.compiled import Shape, numba_obstacle
from .protocol import Advance, Rule, linear_or_relu


class CpuEngine(ABC):
    """An engine whose stacks are NumPy arrays, shape (points, depth, width, width).

    Args:
        blueprint: Shape of the networks.
        x: Inputs, shape (samples, width).
        y: Targets, shape (samples, width).
        dtype: Precision of weights, data and products, ``float64`` or ``float32``.

    Raises:
        ConfigError: numba cannot compile here.
    """

    kind: str

    def __init__(
        self,
        blueprint: ShortcutBlueprint,
        x: np.ndarray,
        y: np.ndarray,
        *,
        dtype: str = "float64",
    ) -> None:
        if dtype not in ("float64", "float32"):
            raise ConfigError(f"dtype {dtype!r}: pass 'float64' or 'float32'")
        self._check_blueprint(blueprint)
        if (obstacle := numba_obstacle()) is not None:
            raise ConfigError(f"{obstacle}, or train with strategy 'stacked'")
        self.blueprint = blueprint
        self.dtype = np.dtype(dtype)
        x, y = self._samples(x, "x"), self._samples(y, "y")
        if len(x) != len(y):
            raise ConfigError(
                f"{len(x)} inputs and {len(y)} targets: pass one target per sample"
            )
        self._prepare(x, y)

    @property
    def name(self) -> str:
        """Name of the strategy in results."""
        return f"{self.kind} (numba)"

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
        # With an infinite floor every point stops at its loss, before any update.
        rule = Rule.of(np.zeros((len(weights), 1)), floor=np.inf)
        return self.advance(weights, weights, rule).stopped

    def advance(self, weights: np.ndarray, velocity: np.ndarray, rule: Rule) -> Advance:
        """Update every point, once per step of the rule or until it stops."""
        self._check_stack(weights, "weights")
        self._check_stack(velocity, "velocity")
        points, rates = len(weights), rule.rates
        if len(rates) != points or len(velocity) != points:
            raise ConfigError(
                f"{points} points, velocity of {len(velocity)} and rates of shape "
                f"{rates.shape}: pass one velocity per point and rates (points, steps)"
            )
        log = Advance(
            np.full(rates.shape, np.nan),
            np.zeros(points, dtype=np.int64),
            np.full(points, np.nan),
        )
        if rates.size:
            self._advance(weights, velocity, rule, log)
        return log

    @abstractmethod
    def _check_blueprint(self, blueprint: ShortcutBlueprint) -> None:
        """Raise for a network that the engine cannot train."""

    @abstractmethod
    def _prepare(self, x: np.ndarray, y: np.ndarray) -> None:
        """Store the data in the engine's form."""

    @abstractmethod
    def _advance(
        self, weights: np.ndarray, velocity: np.ndarray, rule: Rule, log: Advance
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


class FusedEngine(CpuEngine):
    """Trains n-shortcut networks with ReLU, or nothing, between matrices of a unit.

    Example:
        >>> plan = ShortcutBlueprint(width=2, depth=4, mid="relu")
        >>> x = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]])
        >>> engine = FusedEngine(plan, x, x)
        >>> engine.losses(engine.place(np.zeros((3, 4, 2, 2))))
        array([0., 0., 0.])
    """

    kind = "fused"

    def _check_blueprint(self, blueprint: ShortcutBlueprint) -> None:
        if not linear_or_relu(blueprint):
            raise ConfigError(
                f"activations ({blueprint.pre}, {blueprint.mid}, {blueprint.post}) and "
                f"bias={blueprint.bias}: fused tiles know ReLU or identity at mid, "
                "nothing at pre and post, and no biases; train this one by the plain "
                "loop"
            )

    def _prepare(self, x: np.ndarray, y: np.ndarray) -> None:
        from .kernels.fused_kernel import grouped

        self._n_samples, self._data = len(x), (grouped(x), grouped(y))

    def _advance(
        self, weights: np.ndarray, velocity: np.ndarray, rule: Rule, log: Advance
    ) -> None:
        from .kernels.fused_kernel import advance_fused, make_buffers
        from .kernels.vector import lane_count

        plan = self.blueprint
        span, relu = lane_count(self.dtype.itemsize), plan.mid == "relu"
        shape = Shape((0,) * plan.width, (0,) * span, plan.shortcut, plan.skip, relu)
        buffers = make_buffers(plan.depth, plan.width, self._data, self._n_samples)
        stacks = weights.reshape(-1), velocity.reshape(-1)
        advance_fused(shape, buffers, *stacks, rule, log)


class MomentsEngine(CpuEngine):
    """Trains linear n-shortcut networks; the cost does not depend on the samples.

    Example:
        >>> from theodolite.networks import initial_weights
        >>> plan = ShortcutBlueprint(width=2, depth=4)
        >>> x = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]])
        >>> engine = MomentsEngine(plan, x, 2 * x)
        >>> weights = engine.place(initial_weights(plan, seed=0)[None])
        >>> rule = Rule.of(np.full((1, 300), 0.1), floor=1e-6)
        >>> done = engine.advance(weights, 0 * weights, rule)
        >>> bool(done.stopped[0] <= 1e-6)
        True
    """

    kind = "moments"

    def _check_blueprint(self, blueprint: ShortcutBlueprint) -> None:
        if not blueprint.linear:
            raise ConfigError(
                f"activations ({blueprint.pre}, {blueprint.mid}, {blueprint.post}) and "
                f"bias={blueprint.bias}: moments suffice for linear networks without "
                "biases only; try FusedEngine for ReLU at mid, else the plain loop"
            )

    def _prepare(self, x: np.ndarray, y: np.ndarray) -> None:
        samples, d = x.shape
        x, y = x.astype(np.float64), y.astype(np.float64)
        basis, triangle = np.linalg.qr(x)
        inside = basis.T @ y
        outside = y - basis @ inside
        self._least = 0.5 * float(np.vdot(outside, outside)) / samples
        # Fewer samples than features leave columns of zeros.
        self._root, self._target = np.zeros((d, d)), np.zeros((d, d))
        self._root[:, : len(triangle)] = triangle.T / np.sqrt(samples)
        self._target[:, : len(inside)] = inside.T / np.sqrt(samples)

    def _advance(
        self, weights: np.ndarray, velocity: np.ndarray, rule: Rule, log: Advance
    ) -> None:
        from .kernels.moments_kernel import SPAN, advance_moments, make_buffers

        plan = self.blueprint
        shape = Shape((0,) * plan.width, (0,) * SPAN, plan.shortcut, plan.skip, False)
        buffers = make_buffers(plan.depth, self._root, self._target, self.dtype)
        stacks = weights.reshape(-1), velocity.reshape(-1)
        advance_moments(shape, buffers, self._least, *stacks, rule, log)
