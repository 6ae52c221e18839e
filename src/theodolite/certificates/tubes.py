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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .norms import UP, Kernels, Norms, euclidean, repeats

ROUNDOFF = 2.0**-53
# Largest relative error of torch's exp, log, tanh, sigmoid and erf that is allowed for;
# measured ones are some 2e-16 (a test compares with mpmath).
ELEMENTARY = 2.0**-44
# Allowed for the rounding of derivatives, relative to norms of maps; they are far
# more exact, and only multiply gaps and slips, which are small.
SLACK = 1e-9

Form = Callable[..., Tensor]
# How much a bend adds to the loss, at least and at most, and how much changes of
# derivatives add, times gaps or slips, by name.
Weighed = tuple[float, float, Callable[[str], float]]


@dataclass(frozen=True, eq=False)
class Node:
    """An operation: how a tensor was computed, and what that adds to the loss."""

    form: Form
    inputs: tuple["Tube", ...]
    gains: tuple[float | Tensor, ...]  # norms of its derivatives, maybe of groups
    rounding: float
    bend: float
    weigh: Callable[[Tensor], Weighed] | None  # None where it is linear


@dataclass(frozen=True, eq=False)
class Tube:
    """All values of a tensor between two knots."""

    a: Tensor  # at the first knot, as computed
    b: Tensor  # at the second
    gap: float = 0.0
    slip: float = 0.0
    node: Node | None = None
    # The value at weights whose norms are known, for parameters and their views.
    anchor: Tensor | None = None
    # Bounds of gap or slip, by name, where entries are multiplied by weights.
    weighted: Callable[[Tensor, str], float] | None = None
    # The gap entry by entry, where it is known.
    rad: Tensor | None = None

    @property
    def radius(self) -> Tensor:
        """A bound of the gap of each entry."""
        return torch.full_like(self.a, self.gap) if self.rad is None else self.rad

    def along(self, weights: Tensor, name: str) -> float:
        """Return a bound of the gap or slip of entries times weights."""
        error = getattr(self, name)
        most = float(weights.max()) * error if error else 0.0
        if not error or self.weighted is None:
            return most
        return min(most, self.weighted(weights, name))

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
        away = (self.radius + self.slip) * UP
        lower, upper = torch.minimum(self.a, self.b), torch.maximum(self.a, self.b)
        return lower - away, upper + away

    def moved(self, change: Form) -> "Tube":
        """Return the tube of entries that are only moved, repeated or left out."""
        a = change(self.a)
        view = a.untyped_storage().data_ptr() == self.a.untyped_storage().data_ptr()
        norm = 1.0
        if self.reach and not (view and a.numel() == self.a.numel()):
            norm = repeats(change, self.a)
        result = linear(change, (self,), (norm,), a=a)
        anchor = None if self.anchor is None else change(self.anchor)
        return replace(result, anchor=anchor)

    def summed(self, add: Form, count: int, norm: float) -> "Tube":
        """Return the tube of sums or means of at most ``count`` entries each."""
        return linear(add, (self,), (norm * UP,), gamma(count + 4) * norm)

    def scaled(self, factor: float) -> "Tube":
        """Return the tube of a multiple."""
        size = abs(factor)
        result = linear(
            lambda x: x * factor, (self,), (size,), 8 * ROUNDOFF * size,
            sizes=lambda x: x * size,
        )  # fmt: skip
        return result.weighing(lambda weights, name: self.along(weights * size, name))

    def __add__(self, other: "Tube") -> "Tube":
        """Return the tube of the sum."""
        shape = torch.broadcast_shapes(self.a.shape, other.a.shape)
        pair = [
            one if one.a.shape == shape else one.moved(lambda x: x.expand(shape))
            for one in (self, other)
        ]
        return linear(torch.add, pair, (1.0, 1.0), 1.01 * ROUNDOFF).weighing(
            lambda weights, name: sum(one.along(weights, name) for one in pair)
        )

    def weighing(self, known: Callable[[Tensor, str], float]) -> "Tube":
        """Return the same, given bounds of what its operation does to errors."""
        if self.node is None:
            return self
        rounding, bend = self.node.rounding, self.node.bend

        def weighted(weights: Tensor, name: str) -> float:
            own = rounding if name == "slip" else bend
            return (known(weights, name) + float(weights.max()) * own) * UP

        return replace(self, weighted=weighted)

    def __sub__(self, other: "Tube") -> "Tube":
        """Return the tube of the difference."""
        return self + other.scaled(-1.0)

    def __mul__(self, other: "Tube") -> "Tube":
        """Return the tube of the product, entry by entry."""
        return bilinear(torch.mul, self, other, 1, Norms(), {})


def constant(value: Tensor) -> Tube:
    """Return the tube of a tensor that does not move."""
    return Tube(value, value)


def gamma(count: int) -> float:
    r"""Return an upper bound of $\gamma_n$."""
    return 1.01 * count * ROUNDOFF


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
    bend: float,
    rounding: float,
    weigh: Callable[[Tensor], Weighed] | None,
    rad: Tensor | None = None,
) -> Tube:
    """Return the tube of an operation's result."""
    if all(one.still for one in inputs):
        return Tube(knots[0], knots[0], 0.0, rounding)
    gap, slip = (
        own + sum(grown(by, one, name) for by, one in zip(gains, inputs, strict=True))
        for own, name in ((bend, "gap"), (rounding, "slip"))
    )
    node = Node(form, tuple(inputs), tuple(gains), rounding, bend, weigh)
    # What is no number, as infinity times zero, is not known.
    gap, slip = (one * UP if one < math.inf else math.inf for one in (gap, slip))
    if rad is not None:
        rad = (rad * UP).nan_to_num(math.inf, math.inf).clamp(max=gap)
        gap = min(gap, euclidean(rad))
    return Tube(*knots, gap, slip, node, rad=rad)


def grown(gain: float | Tensor, tube: Tube, name: str) -> float:
    """Return what becomes of a gap or slip."""
    if isinstance(gain, Tensor):
        return tube.along(gain, name)
    error = getattr(tube, name)
    return gain * error if error else 0.0


def linear(
    form: Form,
    inputs: Sequence[Tube],
    gains: Sequence[float],
    rounding: float = 0.0,
    a: Tensor | None = None,
    sizes: Form | None = None,
) -> Tube:
    """Return the tube of a linear map.

    Args:
        form: The map.
        inputs: Its arguments.
        gains: Its norms, by argument.
        rounding: How much it rounds, relative to the norms of all arguments.
        a: Its value at the first knot, if it is known.
        sizes: The map of absolute values; the map itself by default.
    """
    knots = knots_of(form, inputs, a)
    rounded = 0.0
    if rounding:
        most = [max(euclidean(one.a), euclidean(one.b)) for one in inputs]
        rounded = rounding * sum(most)
    rad = None
    if any(one.gap for one in inputs):
        rad = (sizes or form)(*(one.radius for one in inputs))
    return made(form, inputs, gains, knots, 0.0, rounded, None, rad)


def bilinear(
    form: Form,
    x: Tube,
    w: Tube,
    count: int,
    norms: Norms,
    kernels: Kernels,
    exact: bool = False,
) -> Tube:
    """Return the tube of a bilinear form, of sums of at most ``count`` products."""
    pair, cross = (x, w), norms.cross
    sizes = [max(euclidean(one.a), euclidean(one.b)) for one in pair]
    if exact and count > 1:
        moving = x.a is not x.b or w.a is not w.b
        ends = [(x.a, w.a), (x.b, w.b)] if moving else [(x.a, w.a)]
        found = [precise(form, *end, count, cross) for end in ends]
        knots = found[0][0], found[-1][0]
        rounding = max(one[1] for one in found)
    else:
        knots = knots_of(form, pair)
        rounding = gamma(count + 4) * cross * sizes[0] * sizes[1]
    dx, dw = (one.change for one in pair)
    moves = [euclidean(one) for one in (dx, dw)]
    off = [size + 2 * one.slip for size, one in zip(moves, pair, strict=True)]
    both = form(dx, dw) if x.a is not x.b and w.a is not w.b else None
    # What the slips of changes may add.
    more = cross * (off[0] * off[1] - moves[0] * moves[1])
    bend = 0.0 if both is None else (euclidean(both) * (1 + SLACK) + more) / 4
    # Errors that are rounding of weights alone are bounded at less cost.
    counts = [one.reach > 1e-13 * size for one, size in zip(pair, sizes, strict=True)]
    gains = [0.0, 0.0]
    for place, one in enumerate(pair):
        other = pair[1 - place]
        if counts[place]:
            fixed = other.a if other.anchor is None else other.anchor
            away = euclidean(fixed - other.a) + moves[1 - place] + other.reach
            key = fixed.data_ptr(), fixed.shape, fixed.stride()
            if other.anchor is None or key not in kernels:
                most = norms.fixing(1 - place, fixed, one.a.shape)
            else:
                most = kernels[key][1]
            if other.anchor is not None:
                # The tensor is kept, so that no other one takes its memory.
                kernels[key] = fixed, most
            gains[place] = most + cross * away
        elif one.reach:
            most = cross * sizes[1 - place]
            if count == 1:
                ends = other.a, other.b
                most = max(norms.fixing(1 - place, end, one.a.shape) for end in ends)
            gains[place] = most + cross * other.reach

    def weigh(by: Tensor) -> Weighed:
        size = euclidean(by)
        centre = 0.0 if both is None else -float((by * both).sum()) / 4
        rad = size * (more / 4 + SLACK * bend)
        # Derivatives of by · form(x, dw) and of by · form(dx, w).
        slopes = [cross * size * off[1], cross * size * off[0]]
        for place, one in enumerate(pair):
            other = pair[1 - place]
            if counts[place] and other.a is not other.b:
                ends = (one.a, dw) if place == 0 else (dx, one.a)
                slope = euclidean(pulled(form, ends, by, (place,))[0])
                slip = 2 * other.slip + SLACK * moves[1 - place]
                slopes[place] = min(slope + cross * size * slip, slopes[place])

        def share(name: str) -> float:
            first, second = getattr(x, name), getattr(w, name)
            most = max(first * w.reach, second * x.reach)
            return slopes[0] * first + slopes[1] * second + cross * size * most

        return centre - rad, centre + rad, share

    def known(weights: Tensor, name: str) -> float:
        top = float(weights.max())
        rest = top * gains[1] * getattr(w, name) if w.reach else 0.0
        if norms.passes(weights, x.a.shape, knots[0].shape):
            return gains[0] * x.along(weights, name) + rest
        turned = norms.weighted(w.a, weights)
        if turned is None or counts[1]:
            return math.inf
        norm = norms.fixing(1, turned, x.a.shape)
        norm += top * cross * (moves[1] + w.reach)
        return norm * getattr(x, name) + rest

    rad = None if both is None else both.abs() / 4 * (1 + SLACK) + more / 4
    for place, one in enumerate(pair):
        if one.gap:
            other = pair[1 - place]
            size = torch.maximum(*(end.abs() for end in other.ends()))
            ends = (one.radius, size) if place == 0 else (size, one.radius)
            part = form(*ends)
            rad = part if rad is None else rad + part
    result = made(form, pair, gains, knots, bend, rounding, weigh, rad)
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
