r"""What weight and batch normalisation make of gradients.

Weight normalisation writes $w = g\,v/\|v\|$. Batch normalisation maps the batch $x$ of
a unit to $\hat x = (x - \mu)/s$, $s = \sqrt{\sigma^2 + \epsilon}$.
"""

import numpy as np

from theodolite.core import ConfigError, Numbers, as_numbers


def weight_norm_speeds(
    length: float, vector: Numbers, speed: Numbers
) -> tuple[float, np.ndarray]:
    r"""Return $\dot g$ and $\dot v$ that a speed $\dot w$ of the weights induces.

    $\dot g = v^T\dot w/\|v\|$ and $\dot v = \frac{g}{\|v\|}(I - vv^T/\|v\|^2)\,\dot w$.

    References:
        Poggio & Liao (2020), equations 12 and 13.

    Example:
        >>> weight_norm_speeds(3.0, [0.0, 2.0], [1.0, 1.0])
        (1.0, array([1.5, 0. ]))
    """
    v = as_numbers("vector", vector, "weights")
    w = as_numbers("speed", speed, len(v))
    norm = float(np.linalg.norm(v))
    if not norm:
        raise ConfigError("the vector is zero and has no direction: pass another")
    unit = v / norm
    along = float(unit @ w)
    return along, length / norm * (w - along * unit)


def batch_norm_jacobian(
    batch: Numbers, eps: float = 0.0, *, centred: bool = True
) -> np.ndarray:
    r"""Return $\partial\hat x/\partial x$ of one unit over a batch.

    $s^{-1}(I - \frac{1}{N}11^T - \frac{1}{N}\hat x\hat x^T)$; without ``centred`` the
    middle term is left out, as where the mean's own derivative is neglected. Its
    singular values are $1/s$ ($N - 2$ times), $\epsilon/s^3$ and 0.

    References:
        Poggio & Liao (2020), appendix A.2, corrected.

    Example:
        >>> found = batch_norm_jacobian([1, 2, 4, 7], eps=0.1)
        >>> np.linalg.svd(found, compute_uv=False)[[0, 2]].round(8)
        array([0.4323377 , 0.00808108])
    """
    x = as_numbers("batch", batch, "samples")
    away = x - x.mean()
    s = np.sqrt(np.mean(away**2) + eps)
    if not s > 0:
        raise ConfigError("all samples are alike: pass a batch that varies, or eps > 0")
    shape = np.eye(len(x)) - np.outer(away / s, away / s) / len(x)
    return (shape - (1 / len(x) if centred else 0.0)) / s
