r"""ReLU networks trained a tile of samples at a time.

The plain loop sends all samples through one layer after the other, so that every layer
reads and writes memory. Here some hundred samples pass all layers forward and backward
while they lie in cache, and only gradients, $d \times d$ a layer, are kept.
"""

from typing import Any

import numpy as np

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.training.engines.cpu import CpuEngine
from theodolite.training.engines.kernels.compiled import Log, Rule, Shape


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
        outside = (blueprint.pre, blueprint.post) == ("identity", "identity")
        inside = blueprint.mid in ("relu", "identity")
        if not (outside and inside) or blueprint.bias:
            raise ConfigError(
                f"activations ({blueprint.pre}, {blueprint.mid}, {blueprint.post}) and "
                f"bias={blueprint.bias}: fused tiles know ReLU or identity at mid, "
                "nothing at pre and post, and no biases; train this one by the plain "
                "loop"
            )

    def _prepare(self, x: np.ndarray, y: np.ndarray) -> None:
        self._samples_count = len(x)
        if self.compiled:
            from theodolite.training.engines.kernels.fused import grouped

            self._data = grouped(x), grouped(y)
        else:
            self._data = x, y

    def _advance(
        self, weights: np.ndarray, velocity: np.ndarray, rule: Rule, log: Log
    ) -> None:
        if self.compiled:
            from theodolite.training.engines.kernels.fused import advance_fused

            stacks = weights.reshape(-1), velocity.reshape(-1)
            advance_fused(*self._setting(), *stacks, rule, log)
        else:
            self._by_torch().advance(weights, velocity, rule, log)

    def _by_torch(self) -> Any:
        from theodolite.training.engines.kernels.fused_torch import TorchTiles

        return TorchTiles(self.blueprint, *self._data)

    def _setting(self) -> tuple[Shape, Any]:
        """Return shape and room, as compiled kernels want them."""
        from theodolite.training.engines.kernels.fused import make_room
        from theodolite.training.engines.kernels.vector import lanes

        plan, span = self.blueprint, lanes(self.dtype.itemsize)
        relu = plan.mid == "relu"
        shape = Shape((0,) * plan.width, (0,) * span, plan.shortcut, plan.skip, relu)
        room = make_room(plan.depth, plan.width, self._data, self._samples_count)
        return shape, room
