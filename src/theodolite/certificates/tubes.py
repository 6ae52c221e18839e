r"""Bounds of tensors between two points of a line of parameters.

At the two ends, here *knots*, a tensor is computed. In between, at a share s of the
way, the exact tensor is within $4s(1-s)$ times ``gap`` of the chord through its exact
values at the knots, in the Euclidean norm; those are within ``slip`` of the computed
ones. An operation f adds to the gap of its argument, times the largest norm of its
derivative, how far f of a chord is from a chord: its *bend*. With a second derivative
of norm M it is $M\|\Delta\|^2/8$ at most, where the argument changes by $\Delta$.

The loss is its own chord plus all bends, each multiplied by the derivative $\lambda$ of
the loss, and plus what derivatives change between the knots, times gaps:
$$e_L = \sum_f \langle\lambda_f, d_f\rangle
  + \langle\lambda_f, f(p + e) - f(p) - J_f e\rangle.$$
In that sum no norms of matrices are multiplied. The same holds for rounding.

References:
    Higham (2002), Accuracy and stability of numerical algorithms, chapters 2 and 3.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count as counter

import torch
from torch import Tensor

from .norms import UP, Norms, euclidean, repeats

ROUNDOFF = 2.0**-53
# Largest relative error of torch's exp, log, tanh, sigmoid and erf that is allowed for;
# measured ones are some 2e-16 (a test compares with mpmath).
ELEMENTARY = 2.0**-44
# Allowed for the rounding of derivatives, relative to norms of maps; they are far
# more exact, and only multiply gaps and slips, which are small.
SLACK = 1e-9

Form = Callable[..., Tensor]
# Bounds of a gap and of a slip.
Errors = tuple[float, float]
# How much a bend adds to the loss, at least and at most, and how much changes of
# derivatives add, times gaps and times slips.
Weighed = tuple[float, float, Errors]
_NODES = counter()


@dataclass(frozen=True, eq=False)
class Node:
    """An operation: how a tensor was computed, and what that adds to the loss."""

    form: Form
    inputs: tuple["Tube", ...]
    gains: tuple[float | Tensor, ...]  # norms of its derivatives, maybe of groups
    carried: tuple[Errors, ...]  # what becomes of the errors of each input
    own: Errors  # its bend and its rounding
    weigh: Callable[[Tensor], Weighed] | None  # None where it is linear
    order: int = field(default_factory=lambda: next(_NODES))


@dataclass(frozen=True, eq=False)
class Tube:
    """All values of a tensor between two knots."""

    a: Tensor  # at the first knot, as computed
    b: Tensor  # at the second
    gap: float = 0.0
    slip: float = 0.0
    node: Node | None = None
    # Bounds of the errors where entries are multiplied by weights.
    weighted: Callable[[Tensor], Errors] | None = None

    @property
    def errors(self) -> Errors:
        """The gap and the slip."""
        return self.gap, self.slip

    @cached_property
    def size(self) -> float:
        """The largest norm at a knot."""
        first = euclidean(self.a)
        return first if self.a is self.b else max(first, euclidean(self.b))

    def along(self, weights: Tensor) -> Errors:
        """Return bounds of the errors of entries times weights."""
        most = grown(float(weights.max()), self)
        if self.weighted is None or not any(most):
            return most
        gap, slip = self.weighted(weights)
        return min(most[0], gap), min(most[1], slip)

    @property
    def still(self) -> bool:
        """Whether the tensor does not move."""
        return self.a is self.b and not self.gap and not self.slip

    @property
    def reach(self) -> float:
        """Largest distance from the computed chord."""
        return (self.gap + self.slip) * UP

    @property
    def change(self) -> Tensor:
        """What is computed at the second knot less than at the first."""
        return self.b - self.a

    def sizes(self, dims: tuple[int, ...]) -> Tensor:
        """Return bounds of the norms of groups of the exact change."""
        size = self.change.abs()
        if dims:
            size = torch.linalg.vector_norm(size, dim=dims, keepdim=True)
        return size * UP + 2 * self.slip

    def ends(self) -> tuple[Tensor, Tensor]:
        """Return the least and the largest values."""
        lower, upper = torch.minimum(self.a, self.b), torch.maximum(self.a, self.b)
        return lower - self.reach, upper + self.reach

    def moved(self, change: Form, norm: float = 1.0) -> "Tube":
        """Return the tube of entries that are only moved, repeated or left out."""
        a = change(self.a)
        view = a.untyped_storage().data_ptr() == self.a.untyped_storage().data_ptr()
        if self.reach and norm == 1 and not (view and a.numel() == self.a.numel()):
            norm = repeats(change, self.a)
        return linear(change, (self,), (norm,), a=a)

    def scaled(self, factor: float) -> "Tube":
        """Return the tube of a multiple."""
        size = abs(factor)
        rounding = 8 * ROUNDOFF * size
        result = linear(lambda x: x * factor, (self,), (size,), rounding)
        return result.weighing(lambda weights: self.along(weights * size))

    def __add__(self, other: "Tube") -> "Tube":
        """Return the tube of the sum."""
        shape = torch.broadcast_shapes(self.a.shape, other.a.shape)
        pair = [
            one if one.a.shape == shape
            # Each entry is repeated as often as the others.
            else one.moved(
                lambda x: x.expand(shape),
                math.sqrt(math.prod(shape) / max(one.a.numel(), 1)) * UP,
            )
            for one in (self, other)
        ]  # fmt: skip
        return linear(torch.add, pair, (1.0, 1.0), 1.01 * ROUNDOFF).weighing(
            lambda weights: total(one.along(weights) for one in pair)
        )

    def weighing(self, known: Callable[[Tensor], Errors]) -> "Tube":
        """Return the same, given bounds of what its operation does to errors."""
        if self.node is None:
            return self
        own = self.node.own

        def weighted(weights: Tensor) -> Errors:
            top = float(weights.max())
            gap, slip = total([known(weights), (top * own[0], top * own[1])])
            return gap * UP, slip * UP

        return replace(self, weighted=weighted)

    def __sub__(self, other: "Tube") -> "Tube":
        """Return the tube of the difference."""
        return self + other.scaled(-1.0)

    def __mul__(self, other: "Tube") -> "Tube":
        """Return the tube of the product, entry by entry."""
        return bilinear(torch.mul, self, other, 1, Norms())


def constant(value: Tensor) -> Tube:
    """Return the tube of a tensor that does not move."""
    return Tube(value, value)


def gamma(count: int) -> float:
    r"""Return an upper bound of $\gamma_n$."""
    return 1.01 * count * ROUNDOFF


def total(errors: Iterable[Errors]) -> Errors:
    """Return sums of gaps and of slips."""
    gaps, slips = zip(*errors, strict=True)
    return sum(gaps), sum(slips)


def grown(gain: float | Tensor, tube: Tube) -> Errors:
    """Return what becomes of a gap and a slip."""
    if isinstance(gain, Tensor):
        return tube.along(gain)
    gap, slip = tube.errors
    return gain * gap if gap else 0.0, gain * slip if slip else 0.0


def split(x: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Return a tensor of few bits, all below those of its largest entry, and the rest.

    Sums of products of such tensors are exact, if they have less than 53 bits.
    """
    top = float(x.abs().max())
    if not 0 < top < 1e200:
        return torch.zeros_like(x), x
    sigma = 1.5 * 2.0 ** (math.frexp(top)[1] + 53 - bits)
    high = (x + sigma) - sigma
    return high, x - high


def precise(
    form: Form, x: Tensor, w: Tensor, count: int, cross: float
) -> tuple[Tensor, float]:
    """Return a bilinear form that rounds about as a single operation, and how much."""
    bits = (54 - math.ceil(math.log2(count))) // 2
    (x1, x2), (w1, w2) = split(x, bits), split(w, bits)
    rest = form(x1, w2) + form(x2, w)
    result = form(x1, w1) + rest
    small = euclidean(x1) * euclidean(w2) + euclidean(x2) * euclidean(w)
    last = ROUNDOFF * (1.01 * euclidean(result) + 4 * euclidean(rest))
    return result, gamma(count + 6) * cross * small + last


def knots_of(
    form: Form, inputs: Sequence[Tube], a: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return values at both knots, the same object where nothing moves."""
    a = form(*(one.a for one in inputs)) if a is None else a
    if all(one.a is one.b for one in inputs):
        return a, a
    return a, form(*(one.b for one in inputs))


def made(
    form: Form,
    inputs: Sequence[Tube],
    gains: Sequence[float | Tensor],
    knots: tuple[Tensor, Tensor],
    own: Errors,
    weigh: Callable[[Tensor], Weighed] | None = None,
) -> Tube:
    """Return the tube of an operation's result, given its bend and rounding."""
    if all(one.still for one in inputs):
        return Tube(knots[0], knots[0], 0.0, own[1])
    carried = tuple(map(grown, gains, inputs))
    node = Node(form, tuple(inputs), tuple(gains), carried, own, weigh)
    # What is no number, as infinity times zero, is not known.
    gap, slip = (
        one * UP if one < math.inf else math.inf for one in total([own, *carried])
    )
    return Tube(*knots, gap, slip, node)


def linear(
    form: Form,
    inputs: Sequence[Tube],
    gains: Sequence[float],
    rounding: float = 0.0,
    a: Tensor | None = None,
) -> Tube:
    """Return the tube of a linear map.

    Args:
        form: The map.
        inputs: Its arguments.
        gains: Its norms, by argument.
        rounding: How much it rounds, relative to the norms of all arguments.
        a: Its value at the first knot, if it is known.
    """
    rounded = rounding * sum(one.size for one in inputs) if rounding else 0.0
    return made(form, inputs, gains, knots_of(form, inputs, a), (0.0, rounded))


def bilinear(
    form: Form,
    x: Tube,
    w: Tube,
    count: int,
    norms: Norms,
    exact: bool = False,
) -> Tube:
    """Return the tube of a bilinear form, of sums of at most ``count`` products."""
    pair, cross = (x, w), norms.cross
    moving = [one.a is not one.b for one in pair]
    if exact and count > 1:
        ends = [(x.a, w.a), (x.b, w.b)] if any(moving) else [(x.a, w.a)]
        found = [precise(form, *end, count, cross) for end in ends]
        knots = found[0][0], found[-1][0]
        rounding = max(one[1] for one in found)
    else:
        knots = knots_of(form, pair)
        rounding = gamma(count + 4) * cross * x.size * w.size
    dx, dw = (one.change for one in pair)
    moves = [euclidean(one) for one in (dx, dw)]
    off = [size + 2 * one.slip for size, one in zip(moves, pair, strict=True)]
    both = form(dx, dw) if all(moving) else None
    # What the slips of changes may add.
    more = cross * (off[0] * off[1] - moves[0] * moves[1])
    bend = 0.0 if both is None else (euclidean(both) * (1 + SLACK) + more) / 4
    # Errors that are rounding of weights alone are bounded at less cost.
    counts = [one.reach > 1e-13 * one.size for one in pair]
    gains = [0.0, 0.0]
    for place, one in enumerate(pair):
        other = pair[1 - place]
        if counts[place] or (one.reach and count == 1):
            most = norms.fixing(1 - place, other.a, one.a.shape)
            gains[place] = most + cross * (moves[1 - place] + other.reach)
        elif one.reach:
            gains[place] = cross * (other.size + other.reach)

    def weigh(by: Tensor) -> Weighed:
        size = euclidean(by)
        centre = 0.0 if both is None else -float((by * both).sum()) / 4
        rad = size * (more / 4 + SLACK * bend)
        # Derivatives of by · form(x, dw) and of by · form(dx, w).
        slopes = [cross * size * off[1], cross * size * off[0]]
        for place, one in enumerate(pair):
            if counts[place] and moving[1 - place]:
                ends = (one.a, dw) if place == 0 else (dx, one.a)
                slope = euclidean(pulled(form, ends, by, (place,))[0])
                slip = 2 * pair[1 - place].slip + SLACK * moves[1 - place]
                slopes[place] = min(slope + cross * size * slip, slopes[place])

        def share(first: float, second: float) -> float:
            most = max(first * w.reach, second * x.reach)
            return slopes[0] * first + slopes[1] * second + cross * size * most

        shares = share(x.gap, w.gap), share(x.slip, w.slip)
        return centre - rad, centre + rad, shares

    def known(weights: Tensor) -> Errors:
        top = float(weights.max())
        rest = grown(top * gains[1], w)
        if norms.passes(weights, x.a.shape, knots[0].shape):
            gap, slip = x.along(weights)
            return total([rest, (gains[0] * gap, gains[0] * slip)])
        turned = norms.weighted(w.a, weights)
        if turned is None or counts[1]:
            return math.inf, math.inf
        norm = norms.fixing(1, turned, x.a.shape)
        return total([rest, grown(norm + top * cross * (moves[1] + w.reach), x)])

    result = made(form, pair, gains, knots, (bend, rounding), weigh)
    return result.weighing(known)


def pulled(
    form: Form, inputs: Sequence[Tensor], by: Tensor, places: Sequence[int]
) -> tuple[Tensor, ...]:
    """Return derivatives of a map's product with a tensor."""
    with torch.enable_grad():
        given = [one.detach() for one in inputs]
        moving = [given[place].requires_grad_() for place in places]
        result = form(*given)
        return torch.autograd.grad(result, moving, by.expand(result.shape))
