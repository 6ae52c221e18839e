"""The growth that the schedule copies: equation 28, two layers, fixed outputs."""

from theodolite.core import Rows
from theodolite.theory import layered_norm

from .config import COURSE, GROWTH, Config

# Half-way, one per cent is left to grow: the odds are 99.
_LEFT = 99.0


def predict(config: Config) -> Rows:
    """Return norms divided by the final norm, at parts of the training time."""
    del config
    import math

    # With one sample, f = y = 1, two layers grow at rate 4 to the equilibrium 1.
    until = math.log1p(_LEFT * (GROWTH - 1)) / 4
    times = [2 * share * until for share in COURSE[1:]]
    grown = [1 / GROWTH, *layered_norm(1 / GROWTH, 2, [1.0], [1.0], times)]
    return Rows(
        {"quantity": "course", "share": share, "value": float(norm), "error": 1e-8}
        for share, norm in zip(COURSE, grown, strict=True)
    )
