r"""Costs by name or as torch losses: bounds, values and gradients.

Notation: $\gamma(Z) = \frac1N\sum_i c(z_i, y_i)$.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logsumexp
from torch import Tensor, nn

from theodolite.core import ConfigError, MeasurementError, as_numbers
from theodolite.instruments import HalfSquareLoss
from theodolite.theory import CostBounds, CostName, Extent, cost_bounds


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetedCost:
    r"""A cost with its targets."""

    name: CostName  # its name in ``theory.cost_bounds``
    factor: float  # factor on the cost
    targets: np.ndarray  # classes, numbers, or signs

    def bounds(self, outputs: Extent) -> CostBounds:
        """Return bounds of the cost on a set of outputs."""
        norm = float(np.linalg.norm(self.targets)) if self.name == "square" else 0.0
        bounds = cost_bounds(self.name, outputs, target_norm=norm)
        k = self.factor
        return replace(
            bounds,
            gradient=k * bounds.gradient,
            curvature=k * bounds.curvature,
            polyak=k * bounds.polyak,
            floor=k * bounds.floor,
        )

    def at(self, outputs: np.ndarray) -> tuple[float, np.ndarray]:
        r"""Return $\gamma$ and its gradient at outputs, one row per sample."""
        n = len(outputs)
        if self.name == "square":
            gap = outputs - self.targets
            value, slope = float((gap**2).sum()) / (2 * n), gap / n
        elif self.name == "logistic":
            margin = self.targets * outputs
            value = float(np.logaddexp(0.0, -margin).mean())
            slope = -self.targets * expit(-margin) / outputs.size
        else:
            places = np.arange(n), self.targets
            total = np.asarray(logsumexp(outputs, axis=1))
            value = float((total - outputs[places]).mean())
            slope = np.exp(outputs - total[:, None])
            slope[places] -= 1.0
            slope /= n
        return self.factor * value, self.factor * slope


def targeted(cost: object, targets: object, outputs: tuple[int, int]) -> TargetedCost:
    """Return a cost with its targets; raise if they do not fit the outputs."""
    name, factor = _named(cost, outputs[1])
    given = targets.detach().cpu().numpy() if isinstance(targets, Tensor) else targets
    if name == "cross_entropy":
        return TargetedCost(name=name, factor=factor, targets=_classes(given, outputs))
    numbers = as_numbers("targets", given, *outputs, error=MeasurementError)
    if name == "logistic":
        if isinstance(cost, nn.BCEWithLogitsLoss):
            numbers = 2 * numbers - 1
        if not np.isin(numbers, (-1.0, 1.0)).all():
            raise MeasurementError(
                "the logistic cost came with targets that are no signs: pass -1 and 1, "
                "or 0 and 1 with BCEWithLogitsLoss"
            )
    return TargetedCost(name=name, factor=factor, targets=numbers)


def _named(cost: object, width: int) -> tuple[CostName, float]:
    if isinstance(cost, str):
        if cost in ("cross_entropy", "square", "logistic"):
            return cost, 1.0
        raise ConfigError(
            f"unknown cost {cost!r}: pass 'cross_entropy', 'square' or 'logistic'"
        )
    if isinstance(cost, HalfSquareLoss):
        return "square", 1.0
    mean = getattr(cost, "reduction", None) == "mean"
    plain = getattr(cost, "weight", None) is None
    if type(cost) is nn.MSELoss and mean:
        return "square", 2.0 / width  # the mean over outputs too, without the half
    if (
        type(cost) is nn.BCEWithLogitsLoss
        and mean
        and plain
        and cost.pos_weight is None
    ):
        return "logistic", 1.0
    if (
        type(cost) is nn.CrossEntropyLoss
        and mean
        and plain
        and not cost.label_smoothing
        and not 0 <= cost.ignore_index < width
    ):
        return "cross_entropy", 1.0
    raise ConfigError(
        f"cost {cost!r} has no known bounds: pass 'cross_entropy', 'square', "
        "'logistic', or CrossEntropyLoss, MSELoss, BCEWithLogitsLoss or HalfSquareLoss "
        "with their default settings"
    )


def _classes(given: object, outputs: tuple[int, int]) -> np.ndarray:
    classes = as_numbers("targets", given, outputs[0], error=MeasurementError)
    if not np.isin(classes, np.arange(outputs[1])).all():
        raise MeasurementError(
            f"targets of cross-entropy are no classes from 0 to {outputs[1] - 1}: pass "
            "whole numbers, one per sample"
        )
    return classes.astype(int)
