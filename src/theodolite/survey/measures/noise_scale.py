r"""The gradient noise scale: at which batch size noise and signal are equal.

With gradients $g_k$ of $K$ parts of $b$ samples each, $\operatorname{tr}\Sigma$, the
variance of one sample's gradient, is estimated by $\frac{b}{K-1}\sum_k\|g_k -
\bar g\|^2$, and $\|G\|^2$ by $\|\bar g\|^2 - \operatorname{tr}\Sigma/(Kb)$; both are
without bias. Their ratio is the simple noise scale.

References:
    McCandlish, Kaplan, Amodei et al. (2018), An empirical model of large-batch
    training, section 2.2 and appendix A.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.instruments import Batch, samples_in, slice_batch

from .site import Site

PARTS = 8
# Entries of each gradient that are multiplied at a time.
_PIECE = 2**18


def parts_of(site: Site, gradients: float) -> list[Batch]:
    """Return equal parts of the data: batches if enough are affordable, else pieces."""
    if min(len(site.batches), gradients) >= 4:
        count = min(PARTS, len(site.batches), int(gradients))
        batches = [site.batches[place] for place in range(count)]
        return [b for b in batches if samples_in(b) == samples_in(batches[0])]
    count = min(PARTS, site.samples // 2)
    size = site.samples // max(count, 1)
    if count < 2 or samples_in(site.batch) is None:
        return []
    return [slice_batch(site.batch, k * size, (k + 1) * size) for k in range(count)]


def products_of(gradients: Sequence[Tensor]) -> Tensor:
    """Return the products of all pairs of gradients, in float64, piece by piece."""
    count = len(gradients)
    products = torch.zeros(count, count, dtype=torch.float64)
    for pieces in zip(*(gradient.split(_PIECE) for gradient in gradients), strict=True):
        rows = torch.stack(pieces).double()
        products += (rows @ rows.T).cpu()
    return products


def noise_scale(products: Tensor, size: int) -> tuple[float, float]:
    """Return the noise scale and its standard error, by the jackknife over parts.

    Infinite if the signal cannot be distinguished from zero.

    Args:
        products: Scalar products of all pairs of gradients.
        size: Samples per part.
    """
    count = len(products)
    whole = _ratio(products, size)
    if count < 3 or not math.isfinite(whole):
        return whole, math.nan
    left_out = []
    for part in range(count):
        kept = [k for k in range(count) if k != part]
        left_out.append(_ratio(products[kept][:, kept], size))
    if not all(map(math.isfinite, left_out)):
        return whole, math.inf
    mean = sum(left_out) / count
    square = sum((each - mean) ** 2 for each in left_out)
    return whole, math.sqrt((count - 1) / count * square)


def _ratio(products: Tensor, size: int) -> float:
    count = len(products)
    mean_square = float(products.mean())
    squares = float(products.diagonal().sum())
    variance = size * max(squares - count * mean_square, 0.0) / (count - 1)
    signal = mean_square - variance / (count * size)
    return variance / signal if signal > 0 else math.inf
