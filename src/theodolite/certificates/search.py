"""Search for the longest segment on which the loss is certain to fall."""

import math
from dataclasses import dataclass

from theodolite.core import MeasurementError

from .bends import weighed
from .enclosure import Parts, Prepared
from .tubes import Tube

# A stretch is as long as its bend may use up this part of the decrease so far.
_SHARE = 0.15


@dataclass(frozen=True)
class Stretch:
    """Bounds between two points of the segment, of the loss less that at its start.

    At a share s of the way they are the chord of ``ends``, plus 4s(1 − s) times
    ``below`` or ``above``, each with an error of ``slip``.
    """

    start: float
    stop: float
    ends: tuple[float, float]
    below: float
    above: float
    slip: float

    def falls(self) -> float:
        """Return up to where the loss is certain to be below that at the start."""
        first, last = (end + self.slip for end in self.ends)
        bend = 4 * self.above * (1 + 1e-12)
        if not (bend < math.inf and self.slip < math.inf):
            return self.start
        if self.start == 0:
            # Both ends have the slip of the start, and all but s times this cancels.
            return self.stop if last + bend < 0 else 0.0
        if not first < 0:
            return self.start
        if max(first, last) + bend / 4 < 0:
            return self.stop
        # The least root of first + (last − first + bend) s − bend s².
        slope = last - first + bend
        root = slope**2 + 4 * bend * first
        reach = 1.0
        if root >= 0 and slope > 0:
            reach = min(-2 * first / (slope + math.sqrt(root)), 1.0)
        return self.start + max(reach - 1e-12, 0.0) * (self.stop - self.start)

    def bend(self, slope: float) -> float:
        """Return how far the loss may be from a line of a slope through its start."""
        times = self.start, self.stop
        lines = [end - slope * t for end, t in zip(self.ends, times, strict=True)]
        far = 0.0
        for sign, bend in ((1, self.above), (-1, -self.below)):
            first, last = (sign * line for line in lines)
            # The chord plus 4s(1 − s) bend is largest there.
            s = (last - first) / (8 * bend) + 0.5 if bend > 0 else 1.0
            s = min(max(s, 0.0), 1.0)
            most = max(last, (1 - s) * first + s * last + 4 * s * (1 - s) * bend)
            far = max(far, most + self.slip)
        return far


def _turns(points: list[tuple[float, float]]) -> tuple[float, ...]:
    """Return where a parabola through points is least, and nearly zero again."""
    if len(points) < 3:
        return ()
    (x, y), *rest = points
    first, second = ((v - y) / (u - x) for u, v in rest)
    bend = (second - first) / (rest[1][0] - rest[0][0])
    if not bend > 0:
        return ()
    slope = first - bend * (rest[0][0] - x)
    least = -slope / (2 * bend)
    root = least**2 - y / bend
    return x + least, x + least + 0.999 * math.sqrt(max(root, 0.0))


def certain_fall(ready: Prepared, change: Parts) -> float:
    """Return by how much a change of the parameters lowers the loss at least."""
    loss, _ = ready.enclose(change, 0.0, 1.0)
    fall = float(loss.a) - float(loss.b) - 2.0000001 * weighed(loss)[2]
    return fall if fall > 0 else 0.0


class Search:
    """Goes along the line from one point to the next, as far as the loss is lower.

    Attributes:
        loss: The loss at the start.
        slope: Its derivative, by differences where it is not given.
        step: Up to there the loss is certain to be lower.
        best: The point with the largest certain decrease, and that decrease.
        path: The stretches that are certain, and the last one, of which a part is.
        longest: The longest of them, with tubes of the outputs of layers.
        count: How many were tried.
        error: Rounding of the loss at the start.
    """

    def __init__(
        self, ready: Prepared, along: Parts, slope: float | None = None
    ) -> None:
        self._ready, self._along = ready, along
        self.loss = ready.run(along, 0.0)[0]
        if not math.isfinite(self.loss):
            raise MeasurementError(
                "the loss is not finite: check the batch and the weights"
            )
        # The scale of the weights over that of the direction.
        sizes = [sum(float(x.detach().square().sum()) for x in one)
                 for one in (ready.parameters, along)]  # fmt: skip
        t = 1e-4 * math.sqrt((sizes[0] + 1e-12) / (sizes[1] or 1.0))
        back, ahead = (ready.run(along, sign * t)[0] for sign in (-1, 1))
        self.slope = (ahead - back) / (2 * t) if slope is None else slope
        self._curvature = (ahead + back - 2 * self.loss) / t**2
        self.count, self.step, self.error = 0, 0.0, math.inf
        self.best = 0.0, 0.0
        self.path: list[Stretch] = []
        self.longest: tuple[Stretch, dict[str, Tube]] | None = None

    def run(self, evaluations: int) -> None:
        """Try one stretch after the other; each begins where the last one ended."""
        if not self.slope < 0:
            self._measured(self._ready.enclose(self._along, 0.0, 0.0)[0], 0.0, 0.0)
            return
        length = 1.0
        if self._curvature:
            length = -self.slope / abs(self._curvature) / 64
        t, exact, top, most = 0.0, False, 0.0, 8.0
        points = [(0.0, 0.0)]
        while self.count < evaluations and 0 < length < math.inf:
            loss, layers = self._ready.enclose(self._along, t, t + length, exact)
            self.count += 1
            stretch = self._measured(loss, t, t + length)
            exact = exact or stretch.slip > 1e-4 * abs(stretch.ends[1])
            reach = stretch.falls()
            whole = reach == stretch.stop
            if reach > self.step:
                self.step = reach
                self.path = [*(one for one in self.path if one.stop <= t), stretch]
                if whole and length > top:
                    self.longest, top = (stretch, layers), length
            if whole and stretch.ends[1] + stretch.slip < -self.best[1]:
                self.best = stretch.stop, -stretch.ends[1] - stretch.slip
            fall = -min(stretch.ends) - 2 * stretch.slip
            used = 4 * stretch.above / fall if fall > 0 else math.inf
            factor = 8.0
            if 0 < used < math.inf:
                # Bends grow faster where they are already far too large.
                power = 0.4 / (1 + max(math.log10(used), 0.0) / 8)
                factor = ((_SHARE if whole or t else 0.3) / used) ** power
            points = [*points[-2:], (stretch.stop, stretch.ends[1])]
            if whole:
                t = stretch.stop
                length *= min(max(factor, 0.5), most)
            else:
                most = 1.7  # beside a stretch that was too long
                length *= min(factor, 0.5) if used < math.inf else 0.1
            for turn in _turns(points):
                if t * 1.02 < turn < t + length:
                    length = turn - t
                    break

    def _measured(self, loss: Tube, start: float, stop: float) -> Stretch:
        below, above, slip = weighed(loss)
        if start == 0:
            self._first, self.error = float(loss.a), slip * (1 + 1e-12)
        first, last = (float(one) - self._first for one in (loss.a, loss.b))
        slip = (slip + self.error) * (1 + 1e-12) + 1e-15 * abs(self._first)
        if math.isnan(below + above + slip + last):
            below, above, slip = -math.inf, math.inf, math.inf
        return Stretch(start, stop, (first, last), below, above, slip)

    def check(self) -> None:
        """Refuse a model whose loss on the segment is not within its bounds."""
        start = self._ready.run(self._along, 0.0)[0]
        certain = start == self.loss
        for one in {self.path[0], self.path[-1]} if self.path else ():
            for s in (0.5, 1.0):
                t = one.start + s * (one.stop - one.start)
                move = self._ready.run(self._along, t)[0] - start
                chord = (1 - s) * one.ends[0] + s * one.ends[1]
                bends = [4 * s * (1 - s) * bend for bend in (one.below, one.above)]
                # The loss as computed has its rounding, too.
                slack = 1e-9 * (1 + abs(start)) + 2 * one.slip
                low, high = chord + bends[0] - slack, chord + bends[1] + slack
                certain = certain and low <= move <= high
        if not certain:
            raise MeasurementError(
                "the loss leaves its bounds, so the model computes something outside "
                "torch or changes from run to run: compute with torch alone"
            )
