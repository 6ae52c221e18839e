"""What one training run returns."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from theodolite.core import Reading, Rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Trajectory(Reading):
    """Losses along one training run.

    Attributes:
        steps: Steps at which the loss was recorded.
        loss: Loss before the update of each of these steps; the last is that of the
            weights as they are left.
        loss_error: Rounding error of each loss as evaluated (the batch's sum in the
            model's precision); it does not count what rounding did to the weights.
        diverged_at: Step at which the run was retired, None if it went to its end.
        probe_rows: Rows of the probes.
        retired: Probes that raised, by name, with the reason.
    """

    dims: ClassVar = {"loss": ("step",), "loss_error": ("step",)}
    error_of: ClassVar = {"loss": "loss_error"}

    steps: np.ndarray
    loss: np.ndarray
    loss_error: np.ndarray
    diverged_at: int | None = None
    probe_rows: Rows = field(default_factory=Rows)
    retired: dict[str, str] = field(default_factory=dict)

    def coordinates(self) -> dict[str, list[Any]]:
        """Label losses by their step."""
        return {"step": self.steps.tolist()}

    @property
    def diverged(self) -> bool:
        """Whether the run was retired."""
        return self.diverged_at is not None

    @property
    def final_loss(self) -> float:
        """Loss of the weights as they are left; NaN for a diverged run."""
        return float("nan") if self.diverged else float(self.loss[-1])
