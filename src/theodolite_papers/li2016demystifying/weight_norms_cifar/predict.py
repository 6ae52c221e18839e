"""Weight norms of He initialisation."""

import numpy as np

from theodolite.core import Row, Rows

from .config import Config


def predict(config: Config) -> Rows:
    r"""Return $E\lVert W\rVert_F = \sigma\,E\chi_k$ and its spread over networks.

    $\sigma^2 = 2/(9 c_{out})$ and $k = 9 c_{in} c_{out}$, so the norm is close to
    $\sqrt{2 c_{in}}$, and its variance to $\sigma^2/2$.
    """
    from scipy.special import gammaln

    rows: list[Row] = []
    for depth in config.depths:
        into, out = np.array(config.layers(depth), dtype=float).T
        k, sigma = 9 * into * out, np.sqrt(2 / (9 * out))
        chi = np.sqrt(2) * np.exp(gammaln((k + 1) / 2) - gammaln(k / 2))
        spread = np.sqrt((sigma**2 * (k - chi**2)).sum()) / len(k)
        labels = {"quantity": "norm", "depth": depth, "epoch": 0}
        value = float((sigma * chi).mean())
        rows.append({**labels, "value": value, "error": float(spread)})
    return Rows(rows)
