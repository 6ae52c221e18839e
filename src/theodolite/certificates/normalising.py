r"""Normalisation of groups of entries, as batch, layer and group norms have it.

A group $u$ of $k$ entries becomes $g(u) = c / s$ with $c = u - \bar u$ and $s^2 =
\|c\|^2/k + \epsilon$. Its derivative $(P - \hat y\hat y^\top/k)/s$, with the projection
P that takes the mean away and $\hat y = c/s$, has norm $1/s$ at most, and $\|D^2 g\|
\le 1.6/(\sqrt k s^2)$, by writing arguments as parts along c and across. s changes by
$1/\sqrt k$ of what c does. Sums of the leading bits of entries are exact, so that
rounding is about that of one operation.
"""

import math

import torch
from torch import Tensor

from .bends import curved
from .norms import UP, euclidean
from .tubes import ROUNDOFF, Tube, gamma, split

_SECOND = 1.6


def normalised(u: Tube, dims: tuple[int, ...], eps: float) -> Tube:
    """Return the tube of groups, along some dimensions, of mean 0 and variance 1."""
    count = math.prod(u.a.shape[dim] for dim in dims)
    log, slack = math.ceil(math.log2(count)), gamma(count + 8)

    def mean(x: Tensor) -> Tensor:
        return x.mean(dims, keepdim=True)

    def norm(x: Tensor) -> Tensor:
        return torch.linalg.vector_norm(x, dim=dims, keepdim=True) * UP

    def form(x: Tensor) -> Tensor:
        centred = x - mean(x)
        return centred / (mean(centred.square()) + eps).sqrt()

    def computed(x: Tensor) -> tuple[Tensor, Tensor, float]:
        """Return the values, least deviations, and what is rounded."""
        high, low = split(x, 52 - log)
        average = mean(high) + mean(low)
        centred = x - average
        slip = 4 * ROUNDOFF * average.abs() + (slack + 4 * ROUNDOFF) * mean(low.abs())
        slip = slip * math.sqrt(count) + 1.01 * ROUNDOFF * norm(centred)
        high, low = split(centred, (54 - log) // 2)
        variance = mean(high.square()) + mean(low * (high + centred)) + eps
        relative = slack * mean(low.abs() * (high.abs() + centred.abs())) / variance
        relative = (relative + 6 * ROUNDOFF) * UP
        deviation = variance.sqrt()
        least = deviation * (1 - relative) - slip / math.sqrt(count) * UP
        least = least.clamp(min=math.sqrt(eps) * (1 - 8 * ROUNDOFF))
        y = centred / deviation
        return y, least, euclidean(slip / least + relative * norm(y))

    (a, first, rounding), (b, second, other) = computed(u.a), computed(u.b)
    # Any point is within half of the chord of one of its ends.
    away = (u.sizes(dims) / 2 + u.reach) * UP
    floor = math.sqrt(eps) * (1 - 8 * ROUNDOFF)
    least = (torch.minimum(first, second) - away / math.sqrt(count)).clamp(min=floor)
    bound = _SECOND / math.sqrt(count) / least**2
    rounding = max(rounding, other)
    knots = (a, a if u.a is u.b else b)
    return curved(form, u, 1 / least, bound, rounding, dims, knots=knots)
