r"""How the matrices of a blueprint are drawn.

Weights come from NumPy's generator, layer by layer in the order applied, so that one
seed gives the same network on every device and torch release, and torch's global
generator is left alone.
"""

import numpy as np

from theodolite.core import ShortcutBlueprint, require_kind, stream


def draw_weights(blueprint: ShortcutBlueprint, *, seed: int) -> np.ndarray:
    r"""Draw all matrices of an n-shortcut network, shape (depth, width, width).

    ``xavier``: independent normal entries of variance $1/d$ (fan-in and fan-out are
    $d$). ``small``: the same times ``init_scale``. ``orthogonal``: Haar measure, by QR
    of a normal matrix with the signs of R's diagonal moved into Q. ``zero``: zeros.

    References:
        Glorot & Bengio (2010); Saxe et al. (2013); Li et al. (2016), Demystifying
        ResNet, section 4.1, for the factor 0.01.

    Example:
        >>> plan = ShortcutBlueprint(width=3, depth=2, init="orthogonal")
        >>> w = draw_weights(plan, seed=0)[0]
        >>> bool(np.allclose(w @ w.T, np.eye(3)))
        True
    """
    require_kind(
        blueprint,
        ShortcutBlueprint,
        task="draw_weights",
        otherwise="draw this network's by networks.build",
    )
    d, rng = blueprint.width, stream(seed)
    shape = (blueprint.depth, d, d)
    if blueprint.init == "zero":
        return np.zeros(shape)
    normal = rng.normal(size=shape)
    if blueprint.init == "orthogonal":
        q, r = np.linalg.qr(normal)
        return q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    scale = blueprint.init_scale if blueprint.init == "small" else 1.0
    return scale * normal / np.sqrt(d)
