"""Closed forms at zero: 1-shortcut networks, and any shortcuts of Eq 1."""

from itertools import accumulate

import numpy as np

from theodolite.core import Row, Rows, ShortcutBlueprint
from theodolite.theory import conditioning_at_zero, moments

from ..shared.problems import closed, named
from .config import SHORTCUTS, UNITS, Config, dataset, shortcut_matrices


def predict(config: Config) -> Rows:
    """Return condition numbers of 1-shortcut networks, and curvatures of Eq 1."""
    rows: list[Row] = []
    for trial in config.seeds:
        x, y = dataset(config, trial)
        for depth in config.depths:
            plan = ShortcutBlueprint(width=config.width, depth=depth, shortcut=1)
            ratio = conditioning_at_zero(plan, x, y).ratio
            rows += named({"ratio": ratio}, 1e-10 * ratio, trial=trial, depth=depth)
        for kind in SHORTCUTS:
            shortcuts = shortcut_matrices(config, kind, trial)
            for lengths in UNITS:
                these = shortcuts[: len(lengths)]
                eyes = np.tile(np.eye(config.width), (len(lengths), 1, 1))
                labels = {"trial": trial, "shortcuts": kind, "units": len(lengths)}
                for name, given in (("curvature", these), ("at_identity", eyes)):
                    sizes = general_curvatures(x, y, given, lengths)
                    for rank, size in enumerate(sizes):
                        rows += closed({name: size}, **labels, rank=rank)
    return Rows(rows)


def general_curvatures(
    x: np.ndarray, y: np.ndarray, shortcuts: np.ndarray, lengths: tuple[int, ...]
) -> np.ndarray:
    r"""Return all $|\lambda|$ at zero for any shortcuts, in falling order.

    Only units of two matrices bend: $W^{r,2}W^{r,1}$ enters the loss to first order by
    $M_r = P_r^T (S\,\Sigma^{XX} - \Sigma^{YX})\,Q_r^T$, with $S$ the product of all
    shortcuts, $P_r$ of those behind unit $r$ and $Q_r$ of those before it. So the
    eigenvalues are $\pm$ the singular values of $M_r$, each $d$ times, and zeros.

    Assumes: no unit of one matrix; linear layers; half mean square loss.
    """
    seen, width = moments(x, y), x.shape[1]
    eye = np.eye(width)
    before = list(accumulate(shortcuts, lambda product, s: s @ product, initial=eye))
    behind = list(accumulate(shortcuts[::-1], lambda p, s: p @ s, initial=eye))[::-1]
    slope = before[-1] @ seen.xx - seen.yx
    sizes = [
        np.linalg.svd(behind[r + 1].T @ slope @ before[r].T, compute_uv=False)
        for r, length in enumerate(lengths)
        if length == 2
    ]
    bent = np.repeat(np.concatenate(sizes), 2 * width)
    flat = np.zeros(sum(lengths) * width**2 - len(bent))
    return np.sort(np.concatenate([bent, flat]))[::-1]
