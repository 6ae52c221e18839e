"""Search for the longest segment on which the loss is certain to fall."""

import math
from dataclasses import dataclass

from theodolite.core import MeasurementError

from .bends import weighed
from .enclosure import Parts, Prepared
from .tubes import Tube

# A stretch is as long as its bend may use up this part of the decrease so far.
_SHARE = 0.15
# Bends grow with the length of a stretch to the power of 2.5 or so, as measured.
_POWER = 0.4


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


def certain_fall(ready: Prepared, change: Parts) -> float:
    """Return by how much a change of the parameters lowers the loss at least."""
    loss, _ = ready.enclose(change, 0.0, 1.0)
    fall = float(loss.a) - float(loss.b) - 2.0000001 * weighed(loss)[2]
    return fall if fall > 0 else 0.0


class Search:
    """Goes along the line from one point to the next, as far as the loss is lower.

    Attributes:
        loss: The loss at the start.
        error: Its rounding.
        slope: Its derivative, by differences where it is not given.
        step: Up to there the loss is certain to be lower.
        best: The point with the largest certain decrease, and that decrease.
        path: The stretches that are certain; of the next one, a part may be.
        layers: Tubes of the outputs of layers, on the stretch up to the best point.
        count: How many were tried.
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
        sizes = [sum(float(x.square().sum()) for x in one)
                 for one in (ready.anchors, along)]  # fmt: skip
        t = 1e-4 * math.sqrt((sizes[0] + 1e-12) / (sizes[1] or 1.0))
        back, ahead = (ready.run(along, sign * t)[0] for sign in (-1, 1))
        self.slope = (ahead - back) / (2 * t) if slope is None else slope
        self._curvature = (ahead + back - 2 * self.loss) / t**2
        self.count, self.step, self.error = 0, 0.0, math.inf
        self.best = 0.0, 0.0
        self.path: list[Stretch] = []
        self.layers: dict[str, Tube] = {}

    def run(self, evaluations: int) -> None:
        """Try one stretch after the other; each begins where the last one ended."""
        if not self.slope < 0:
            self._measured(self._ready.enclose(self._along, 0.0, 0.0)[0], 0.0, 0.0)
            return
        length = 1.0
        if self._curvature:
            length = -self.slope / abs(self._curvature) / 64
        t, exact, most = 0.0, False, 8.0
        while self.count < evaluations and 0 < length < math.inf:
            loss, layers = self._ready.enclose(self._along, t, t + length, exact)
            self.count += 1
            stretch = self._measured(loss, t, t + length)
            exact = exact or stretch.slip > 1e-4 * abs(stretch.ends[1])
            reach, fall = stretch.falls(), -stretch.ends[1] - stretch.slip
            whole = reach == stretch.stop
            self.step = max(self.step, reach)
            if whole:
                self.path.append(stretch)
                if fall > self.best[1]:
                    self.best, self.layers = (stretch.stop, fall), layers
            fall = -min(stretch.ends) - 2 * stretch.slip
            used = 4 * stretch.above / fall if fall > 0 else math.inf
            factor = (_SHARE / used) ** _POWER if 0 < used < math.inf else 8.0
            if whole:
                t = stretch.stop
                length *= min(max(factor, 0.5), most)
            else:
                most = 2.0  # beside a stretch that was too long
                length *= min(factor, 0.5) if used < math.inf else 0.1
            # A parabola through the start and the last point is zero there.
            bend = stretch.ends[1] - self.slope * stretch.stop
            zero = -self.slope * stretch.stop**2 / bend if bend > 0 else math.inf
            for turn in (zero / 2, 0.999 * zero):
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
        for one, s in zip({*self.path[:1], *self.path[-1:]}, (0.5, 0.7), strict=False):
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
