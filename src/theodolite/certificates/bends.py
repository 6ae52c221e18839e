"""Rules for smooth maps and for kinks, and the sum of all bends in a loss."""

import math

import torch
from torch import Tensor

from .norms import UP, euclidean
from .tubes import SLACK, Form, Tube, Weighed, grown, knots_of, made, pulled


def curved(
    form: Form,
    u: Tube,
    slope: Tensor,
    second: Tensor,
    rounding: float,
    dims: tuple[int, ...] = (),
    convex: bool = False,
    spread: Form | None = None,
    knots: tuple[Tensor, Tensor] | None = None,
) -> Tube:
    """Return the tube of a smooth map of groups of entries.

    Args:
        form: The map.
        u: Its argument.
        slope: Bounds of the norm of its derivative, for each group.
        second: Bounds of the norm of its second derivative.
        rounding: Bound of the norm of what it rounds.
        dims: Dimensions of a group; none for functions of each entry.
        convex: Whether it is convex, and a group of it has one entry.
        spread: What becomes of errors entry by entry, for maps of groups.
        knots: Values, if they are computed already.
    """
    sizes, still = u.sizes(dims), u.a is u.b
    bends = torch.zeros_like(sizes) if still else second * sizes**2 / 8

    def weigh(by: Tensor) -> Weighed:
        low, high = weighed_bends(by, bends) if convex else (-math.inf, math.inf)
        if dims:
            by = torch.linalg.vector_norm(by, dim=dims, keepdim=True)
        most = float((by.abs() * bends).sum()) * UP
        low, high = max(low, -most), min(high, most)
        by = by.abs() * second
        first, top = euclidean(by * sizes), float(by.max()) * UP
        return low, high, lambda name: (first + top * u.reach) * getattr(u, name)

    knots, rad = knots or knots_of(form, (u,)), None
    if spread or not dims:
        rad = (spread(u.radius) if spread else slope * u.radius) + bends
    bend = 0.0 if still else euclidean(bends)
    result = made(form, (u,), (slope * UP,), knots, bend, rounding, weigh, rad)
    if dims and (dims != (slope.ndim - 1,) or knots[0].shape != u.a.shape):
        return result

    def known(weights: Tensor, name: str) -> float:
        if dims and weights.shape[-1] != 1:
            return math.inf
        return u.along(weights * slope * UP, name)

    return result.weighing(known)


def weighed_bends(by: Tensor, bends: Tensor) -> tuple[float, float]:
    """Return how much bends of a convex function, below chords, add to the loss."""
    low = float((by.clamp(min=0) * bends).sum()) * UP
    return -low, float(((-by).clamp(min=0) * bends).sum()) * UP


def kinked(
    form: Form,
    u: Tube,
    bends: Tensor,
    margins: Tensor,
    most: float,
    rad: Tensor,
    tops: Tensor,
) -> Tube:
    r"""Return the tube of a convex map of linear pieces that are no longer than one.

    Args:
        form: The map.
        u: Its argument.
        bends: How far the chord may be above it, entry by entry.
        margins: How far the chord of the argument stays away from a kink, for each
            entry of the result.
        most: What one entry may change besides its derivative, over an error there.
        rad: What becomes of errors entry by entry.
        tops: Norms of the errors that reach an entry.
    """

    def weigh(by: Tensor) -> Weighed:
        left = (margins - 2 * u.slip).clamp(min=0)

        def share(name: str) -> float:
            error = getattr(u, name) * UP
            known = tops if name == "gap" else torch.full_like(tops, error)
            return excess(by, left, error * most, known * most * UP)

        return *weighed_bends(by, bends), share

    knots, bend = knots_of(form, (u,)), euclidean(bends)
    result = made(form, (u,), (1.0,), knots, bend, 0.0, weigh, rad + bends)
    return result.weighing(u.along) if knots[0].shape == u.a.shape else result


def rectified(u: Tube) -> Tube:
    """Return the tube of max(u, 0)."""
    least, largest = torch.minimum(u.a, u.b), torch.maximum(u.a, u.b)
    passes = (least < u.slip) & (largest > -u.slip)
    bends = torch.where(passes & (u.a is not u.b), u.sizes(()) / 4, 0.0)
    margins = torch.where(least * largest > 0, torch.minimum(u.a.abs(), u.b.abs()), 0.0)
    rad = torch.where(u.ends()[1] < 0, 0.0, u.radius)
    return kinked(torch.relu, u, bends, margins, 1.0, rad, u.radius)


def largest(u: Tube) -> Tube:
    """Return the tube of the largest along the first dimension."""

    def top(x: Tensor) -> Tensor:
        return x.amax(0)

    first, second = (one.argmax(0, keepdim=True) for one in (u.a, u.b))
    margins = torch.full_like(top(u.a), math.inf)
    for one in (u.a, u.b):
        others = one.scatter(0, first, -math.inf)
        margins = torch.minimum(margins, one.gather(0, first)[0] - top(others))
    margins = margins.clamp(min=0)
    stays = (first == second)[0] & (margins > 2 * u.slip)
    change = u.change
    ranges = change.amax(0) - change.amin(0) + 4 * u.slip
    bends = torch.where(stays | (u.a is u.b), 0.0, ranges / 4 * UP)
    tops = torch.linalg.vector_norm(u.radius, dim=0)
    return kinked(top, u, bends, margins, math.sqrt(2), top(u.radius), tops)


def excess(by: Tensor, margins: Tensor, reach: float, tops: Tensor) -> float:
    r"""Return a bound of $\sum_i |\lambda_i| (|e_i| - q_i)_+$ over errors of a norm.

    It is $\frac\mu2\|e\|^2 + \sum_i (\lambda_i^2/2\mu - |\lambda_i|q_i)_+$ at most, for
    any $\mu$.

    Args:
        by: The derivatives $\lambda$.
        margins: The distances q to kinks.
        reach: Largest norm of the errors e.
        tops: Largest errors entry by entry.
    """
    if not reach or not reach < math.inf:
        return 0.0 if not reach else math.inf
    near = margins < tops
    sizes, costs, tops = by[near].abs(), margins[near], tops[near]
    top = euclidean(sizes)
    best = min(top * reach, float((sizes * (tops - costs)).sum()))
    for power in range(12):
        mu = top / reach / 2**power
        error = torch.minimum(sizes / mu, tops)
        parts = (sizes * (error - costs) - mu / 2 * error**2).clamp(min=0)
        best = min(best, mu * reach**2 / 2 + float(parts.sum()))
    return best * UP


def weighed(loss: Tube) -> tuple[float, float, float]:
    """Return how far a loss is from its chord, at least and at most, and its slip.

    Between knots it is the first two, times 4s(1 − s), and the last.
    """
    pulls = {id(loss): torch.ones_like(loss.a)}
    low = high = slip = 0.0
    for tube in reversed(_ordered(loss)):
        by, node = pulls.pop(id(tube), None), tube.node
        if node is None or by is None:
            continue
        size = euclidean(by)
        pairs = list(zip(node.gains, node.inputs, strict=True))
        # Of the derivatives themselves.
        rest = [SLACK * size * sum(grown(*pair, name) for pair in pairs)
                for name in ("gap", "slip")]  # fmt: skip
        own = [grown(g, one, "slip") for g, one in pairs if one.node is None]
        slip += size * (node.rounding + sum(own)) + rest[1]
        if node.weigh is not None:
            least, most, share = node.weigh(by)
            shared = share("gap") + rest[0]
            low, high = low + least - shared, high + most + shared
            slip += share("slip")
        else:
            low, high = low - rest[0], high + rest[0]
        places = [at for at, one in enumerate(node.inputs) if one.node is not None]
        if places:
            parts = pulled(node.form, [one.a for one in node.inputs], by, places)
            for at, part in zip(places, parts, strict=True):
                key = id(node.inputs[at])
                pulls[key] = pulls[key] + part if key in pulls else part
    numbers = [(-low, loss.gap), (high, loss.gap), (slip, loss.slip)]
    # What is not known is no number, or infinite.
    low, high, slip = (
        min(max(one, 0.0) * UP if one < math.inf else math.inf,
            most if most < math.inf else math.inf)
        for one, most in numbers
    )  # fmt: skip
    return -low, high, slip


def _ordered(end: Tube) -> list[Tube]:
    """Return a tube and all that it was computed from, what was used first."""
    done: dict[int, Tube] = {}
    stack = [(end, False)]
    while stack:
        tube, ready = stack.pop()
        if ready:
            done[id(tube)] = tube
        elif id(tube) not in done:
            stack.append((tube, True))
            inputs = tube.node.inputs if tube.node else ()
            stack += [(other, False) for other in inputs]
    return list(done.values())
