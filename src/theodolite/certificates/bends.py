"""Rules for smooth maps and for kinks, and the sum of all bends in a loss."""

import math

import torch
from torch import Tensor

from .norms import UP, euclidean
from .tubes import SLACK, Errors, Form, Tube, Weighed, knots_of, made, pulled, total


def curved(
    form: Form,
    u: Tube,
    slope: Tensor,
    second: Tensor,
    rounding: float,
    dims: tuple[int, ...] = (),
    convex: bool = False,
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
        share = first + top * u.reach
        return low, high, (share * u.gap, share * u.slip)

    knots, bend = knots or knots_of(form, (u,)), 0.0 if still else euclidean(bends)
    result = made(form, (u,), (slope * UP,), knots, (bend, rounding), weigh)
    if dims and (dims != (slope.ndim - 1,) or knots[0].shape != u.a.shape):
        return result

    def known(weights: Tensor) -> Errors:
        if dims and weights.shape[-1] != 1:
            return math.inf, math.inf
        return u.along(weights * slope * UP)

    return result.weighing(known)


def weighed_bends(by: Tensor, bends: Tensor) -> tuple[float, float]:
    """Return how much bends of a convex function, below chords, add to the loss."""
    low = float((by.clamp(min=0) * bends).sum()) * UP
    return -low, float(((-by).clamp(min=0) * bends).sum()) * UP


def kinked(form: Form, u: Tube, bends: Tensor, margins: Tensor, most: float) -> Tube:
    r"""Return the tube of a convex map of linear pieces that are no longer than one.

    Args:
        form: The map.
        u: Its argument.
        bends: How far the chord may be above it, entry by entry.
        margins: How far the chord of the argument stays away from a kink, for each
            entry of the result.
        most: What one entry may change besides its derivative, over an error there.
    """

    def weigh(by: Tensor) -> Weighed:
        left = (margins - 2 * u.slip).clamp(min=0)
        gap, slip = (excess(by, left, error * most * UP) for error in u.errors)
        return *weighed_bends(by, bends), (gap, slip)

    knots, bend = knots_of(form, (u,)), euclidean(bends)
    result = made(form, (u,), (1.0,), knots, (bend, 0.0), weigh)
    return result.weighing(u.along) if knots[0].shape == u.a.shape else result


def rectified(u: Tube) -> Tube:
    """Return the tube of max(u, 0)."""
    least, largest = torch.minimum(u.a, u.b), torch.maximum(u.a, u.b)
    passes = (least < u.slip) & (largest > -u.slip)
    bends = torch.where(passes & (u.a is not u.b), u.sizes(()) / 4, 0.0)
    margins = torch.where(least * largest > 0, torch.minimum(u.a.abs(), u.b.abs()), 0.0)
    return kinked(torch.relu, u, bends, margins, 1.0)


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
    return kinked(top, u, bends, margins, math.sqrt(2))


def excess(by: Tensor, margins: Tensor, reach: float) -> float:
    r"""Return a bound of $\sum_i |\lambda_i| (|e_i| - q_i)_+$ over errors of a norm.

    It is $\frac\mu2\|e\|^2 + \sum_i (\lambda_i^2/2\mu - |\lambda_i|q_i)_+$ at most, for
    any $\mu$.

    Args:
        by: The derivatives $\lambda$.
        margins: The distances q to kinks.
        reach: Largest norm of the errors e.
    """
    if not 0 < reach < math.inf:
        return reach
    near = margins < reach
    sizes, costs = by[near].abs(), margins[near]
    top = euclidean(sizes)
    best = min(top * reach, float((sizes * (reach - costs)).sum()))
    for power in range(12):
        mu = top / reach / 2**power
        error = (sizes / mu).clamp(max=reach)
        parts = (sizes * (error - costs) - mu / 2 * error**2).clamp(min=0)
        best = min(best, mu * reach**2 / 2 + float(parts.sum()))
    return best * UP


def weighed(loss: Tube) -> tuple[float, float, float]:
    """Return how far a loss is from its chord, at least and at most, and its slip.

    Between knots it is the first two, times 4s(1 − s), and the last.
    """
    pulls = {loss: torch.ones_like(loss.a)} if loss.node else {}
    low = high = slip = 0.0
    while pulls:
        # What was computed last; nothing that is still to come reads it.
        tube = max(pulls, key=_order)
        by, node = pulls.pop(tube), tube.node
        assert node is not None
        size = euclidean(by)
        pairs = list(zip(node.carried, node.inputs, strict=True))
        # The first is the rounding of the derivatives themselves.
        for least, most, (gap, more) in [
            (0.0, 0.0, tuple(SLACK * size * one for one in total(node.carried))),
            *([node.weigh(by)] if node.weigh else []),
        ]:
            low, high, slip = low + least - gap, high + most + gap, slip + more
        slip += size * (
            node.own[1] + sum(errors[1] for errors, one in pairs if one.node is None)
        )
        places = [at for at, one in enumerate(node.inputs) if one.node is not None]
        if places:
            parts = pulled(node.form, [one.a for one in node.inputs], by, places)
            for at, part in zip(places, parts, strict=True):
                one = node.inputs[at]
                pulls[one] = pulls[one] + part if one in pulls else part
    numbers = [(-low, loss.gap), (high, loss.gap), (slip, loss.slip)]
    # What is not known is no number, or infinite.
    low, high, slip = (
        min(max(one, 0.0) * UP if one < math.inf else math.inf,
            most if most < math.inf else math.inf)
        for one, most in numbers
    )  # fmt: skip
    return -low, high, slip


def _order(tube: Tube) -> int:
    return tube.node.order if tube.node else -1
