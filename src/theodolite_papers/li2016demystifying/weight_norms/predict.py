"""Growth near zero, and consequences of the optimal map for the norms."""

import numpy as np

from theodolite.core import Row, Rows, ShortcutBlueprint
from theodolite.theory import linear_loss, moments

from ..shared.problems import EPS, closed
from ..shared.whitened import whitened
from .config import Config


def predict(config: Config) -> Rows:
    r"""Return growth near zero at each rate, first and optimal loss, and ranks.

    Near zero a 2-shortcut linear network descends by $W_1 \leftarrow W_1 - \eta
    W_2^\top M$, $W_2 \leftarrow W_2 - \eta M W_1^\top$: along the singular vectors of
    $M$, $W_1$ and $W_2$ grow by $1 \pm \eta s_k$ per step, at any depth. From
    entries of variance $v$ the mean square norm after $t$ steps is
    $v\,d\sum_k\frac12[(1+\eta s_k)^{2t} + (1-\eta s_k)^{2t}]$.
    """
    data = moments(*whitened(config.dataset, config.width))
    plan = ShortcutBlueprint(width=config.width, depth=2)
    single = np.linalg.svd(data.gap, compute_uv=False)
    best = np.linalg.svd(data.yx, compute_uv=False)
    variance = plan.init_scale**2 / config.width
    rows: list[Row] = []
    for rate in config.rates:
        for step in config.looked_at:
            with np.errstate(over="ignore"):
                growth = (1 + rate * single) ** (2 * step)
                shrink = (1 - rate * single) ** (2 * step)
            square = config.width * np.sum(growth + shrink)
            value = float(np.sqrt(variance * square / 2))
            if not np.isfinite(value):
                continue  # overflow: far from zero
            rows += closed({"early_norm": value}, EPS * step, lr=rate, step=step)
    zero = np.zeros((2, config.width, config.width))
    numbers = {
        "first_loss": linear_loss(plan, zero, data),
        "optimal_loss": data.optimal_loss(),
        # Singular values that are pure rounding are five decades below the others.
        "rank": float(np.sum(best > 1e-10 * best[0])),
        "width": float(config.width),
    }
    return Rows(rows + closed(numbers, EPS * config.width))
