"""Search for the longest segment on which the loss is certain to fall."""

import math

import torch

from theodolite.core import MeasurementError

from .enclosure import Parts, Prepared
from .intervals import ROUNDOFF, Interval
from .series import Series


def exactly(direction: Parts) -> list[Interval]:
    """Return a direction as intervals without radius."""
    return [Interval(one) for one in direction]


def certain_fall(ready: Prepared, change: list[Interval]) -> float:
    """Return by how much a change of the parameters lowers the loss at least."""
    tangent = ready.enclose(change, 0.0)[0].terms[1]
    loss = ready.enclose(change, 1.0)[0].by_bends(tangent)
    slope, bend = upper(loss, 1), upper(loss, 2)
    fall = -(slope + bend) - 1e-15 * (abs(slope) + abs(bend))
    return fall if fall > 0 else 0.0


def upper(loss: Series, place: int) -> float:
    """Return an upper bound of a coefficient of a loss."""
    term = loss.terms[place]
    if term is None:
        return 0.0
    upper = float(term.ends()[1])
    return math.inf if math.isnan(upper) else upper


class Search:
    """Looks for the longest segment on which the loss is certain to fall."""

    def __init__(self, ready: Prepared, along: Parts) -> None:
        self._ready, self._along = ready, along
        self.count, self.step = 1, 0.0
        self.loss = ready.run(along, 0.0)[0]
        if not math.isfinite(self.loss):
            raise MeasurementError(
                "the loss is not finite: check the batch and the weights"
            )
        self.start = ready.enclose(exactly(along), 0.0)[0]
        self.best: tuple[Series, dict[str, Series]] | None = None
        self._tried: list[Series] = []

    @property
    def known(self) -> bool:
        """Whether rounding leaves the sign of the slope."""
        slope = self.start.terms[1]
        lower, upper = (
            slope.ends()
            if slope
            else (torch.zeros(1, device="cpu"), torch.zeros(1, device="cpu"))
        )
        return bool((lower > 0) | (upper < 0))

    def error(self) -> float:
        """Return the largest distance of the loss as computed from the exact one."""
        first = self.start.first
        error = float((first.mid - self.loss).abs() + first.radius) * (1 + 1e-15)
        return math.inf if math.isnan(error) else error

    def run(self, evaluations: int) -> None:
        """Try segments; each is kept up to where its bound returns to the start."""
        slope, bend = upper(self.start, 1), self._curvature() / 2
        if not slope < 0:
            return
        # How much radii grow over the layers, seen by what became of rounding; the
        # first guess follows it with constants fitted to some networks.
        tangent = self.start.terms[1]
        width = float(tangent.radius) if tangent else 0.0
        growth = max(width / -slope / ROUNDOFF, 1.0)
        share = min(0.3, max(8 * growth**-0.35, 4e-4))
        length = -slope / abs(bend) * share if bend else share
        failed = math.inf
        while self.count < evaluations and 0 < length < math.inf:
            loss, layers = self._ready.enclose(exactly(self._along), length)
            loss = loss.by_bends(self.start.terms[1])
            self.count += 1
            reach = reach_of(loss)
            if reach > 0:
                self._tried.append(loss)
            if reach > self.step:
                self.step, self.best = reach, (loss, layers)
            longer = min(_longest(slope, bend, length, upper(loss, 2)), 30 * length)
            if reach < length:
                failed, longer = length, max(longer, length / 10)
            else:
                longer = max(longer, 1.5 * length)
            if not self.step < longer < failed:
                longer = math.sqrt(max(self.step, failed / 100) * failed)
            if not 1.001 * self.step < longer:
                break
            length = longer

    def _curvature(self) -> float:
        """Return the second derivative of the loss there, about."""
        parts = self._ready.parameters
        sizes = [sum(float(x.detach().square().sum()) for x in one)
                 for one in (parts, self._along)]  # fmt: skip
        t = 1e-5 * math.sqrt((sizes[0] + 1e-12) / (sizes[1] or 1.0))
        before = self._ready.gradient()
        with self._ready.moved(self._along, t):
            after = self._ready.gradient()
        pairs = zip(after, before, self._along, strict=True)
        return sum(float(((x - y) * z).sum()) for x, y, z in pairs) / t

    def check(self) -> None:
        """Refuse a model whose loss at the end of a segment is not in its enclosure."""
        if self.best is None:
            return
        loss, start = self.best[0], self._ready.run(self._along, 0.0)[0]
        certain = start == self.loss
        for t in (self.step, self.step / 16):
            move = float(self._ready.run(self._along, t)[0]) - start
            bounds = [term.ends() for term in loss.terms[1:] if term]
            lower, upper = (
                sum(t**k * float(ends[side]) for k, ends in enumerate(bounds, 1))
                for side in (0, 1)
            )
            # Both losses are computed with rounding, which bounds do not show.
            slack = 1e-9 * (1 + abs(start)) + 2 * self.error()
            certain = certain and not (move < lower - slack or move > upper + slack)
        if not certain:
            raise MeasurementError(
                "the loss leaves its bounds, so the model computes something outside "
                "torch or changes from run to run: compute with torch alone"
            )

    def decrease(self) -> tuple[float, float]:
        """Return the step with the largest guaranteed decrease, and that decrease."""
        best = 0.0, 0.0
        for loss in self._tried:
            slope, bend = upper(loss, 1), upper(loss, 2)
            t = min(reach_of(loss), -slope / (2 * bend) if bend > 0 else math.inf)
            # What is rounded here is less than this part of the smaller term.
            fall = -(slope * t + max(bend, 0.0) * t * t) * (1 - 1e-14)
            fall -= 1e-15 * (abs(slope) * t + abs(bend) * t * t)
            if fall > best[1]:
                best = t, fall
        return best


def reach_of(loss: Series) -> float:
    """Return the step up to which the upper bound stays below the start."""
    slope, bend = upper(loss, 1), upper(loss, 2)
    if not slope < 0 or bend == math.inf:
        return 0.0
    root = -slope / bend * (1 - 1e-14) if bend > 0 else math.inf
    return min(loss.length, root)


def _longest(slope: float, start: float, length: float, bend: float) -> float:
    """Return where a bend that grows with the length brings the loss back."""
    growth = (bend - start) / length
    if not 0 < growth < math.inf:
        return length * (30 if growth <= 0 else 1 / 30)
    root = math.sqrt(start**2 - 4 * growth * slope)
    return 0.9 * (root - start) / (2 * growth)
