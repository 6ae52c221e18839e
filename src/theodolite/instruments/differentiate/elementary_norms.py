"""Norms from elementary operators, which torch differentiates rightly to any order.

Of its own it has right second derivatives alone (2.13): third ones, which a model wants
that differentiates inside its own pass, are wrong through batch, instance and layer
norm.
"""

import torch
from torch import Tensor


def standardised(x: Tensor, axes: list[int], eps: float) -> Tensor:
    """Return an input less its mean, over its deviation along some axes.

    In float32 where it came in less, as torch's norms compute.
    """
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    centred = wide - wide.mean(axes, keepdim=True)
    variance = centred.square().mean(axes, keepdim=True)
    return centred * (variance + eps).rsqrt()
