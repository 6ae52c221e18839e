r"""Deep linear networks trained on second moments: the samples never return.

With $\Sigma_{XX} = ZZ^\top$, $Z$ square, and $\Sigma_{YX} = CZ^\top$, the half mean
square of $f(x) = Wx$ is $L = L_{opt} + \frac12\lVert WZ - C\rVert^2$: gradient descent
on $m$ samples is gradient descent on the $d$ columns of $Z$ with targets $C$. Unlike
$\frac12\mathrm{tr}(W\Sigma_{XX}W^\top - 2W\Sigma_{YX}^\top + \Sigma_{YY})$, nothing
cancels when the loss is small. $Z^\top$ is the triangle of a QR decomposition of the
inputs, so that conditions are not squared and singular moments need no care.
"""

from typing import Any

import numpy as np

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.training.engines.cpu import CpuEngine
from theodolite.training.engines.kernels.compiled import Log, Rule, Shape


class MomentsEngine(CpuEngine):
    """Trains linear n-shortcut networks; the cost does not depend on the samples.

    Example:
        >>> from theodolite.networks import draw_weights
        >>> plan = ShortcutBlueprint(width=2, depth=4)
        >>> x = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]])
        >>> engine = MomentsEngine(plan, x, 2 * x)
        >>> weights = engine.place(draw_weights(plan, seed=0)[None])
        >>> rule = {"momentum": [0], "weight_decay": [0], "ceiling": [np.inf]}
        >>> done = engine.advance(
        ...     weights, 0 * weights, np.full((1, 300), 0.1), floor=[1e-6], **rule
        ... )
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
        self, weights: np.ndarray, velocity: np.ndarray, rule: Rule, log: Log
    ) -> None:
        if self.compiled:
            from theodolite.training.engines.kernels.moments import advance_moments

            stacks = weights.reshape(-1), velocity.reshape(-1)
            advance_moments(*self._setting(), *stacks, rule, log)
        else:
            self._by_torch().advance(weights, velocity, rule, log)

    def _by_torch(self) -> Any:
        from theodolite.training.engines.kernels.moments_torch import TorchMoments

        data = self._root.astype(self.dtype), self._target.astype(self.dtype)
        return TorchMoments(self.blueprint, *data, self._least)

    def _setting(self) -> tuple[Shape, Any, float]:
        """Return shape, room and least loss, as compiled kernels want them."""
        from theodolite.training.engines.kernels.moments import SPAN, make_room

        plan = self.blueprint
        shape = Shape((0,) * plan.width, (0,) * SPAN, plan.shortcut, plan.skip, False)
        room = make_room(plan.depth, self._root, self._target, self.dtype)
        return shape, room, self._least
