"""The limit laws of figure 1, and the singular values of pools."""

import math

import numpy as np

from theodolite.core import Row, Rows
from theodolite.theory import shifted_singular_edges, shifted_singular_shares

from ..shared.reads import SHARES
from .config import Config

# Entries are uniform on (-1, 1) over the root of the size.
DEVIATION = 1 / math.sqrt(3)
# Quadrature of the limit laws.
_ERROR = 1e-5
GAINS = (0.25, 0.5, 1.0, 2.0, 4.0)


def predict(config: Config) -> Rows:
    """Predict shares of the spectra with and without the identity, and their ends."""
    rows: list[Row] = []
    for shift in (0.0, 1.0):
        for i, value in enumerate(_shares(1.0, shift)):
            rows.append(_row("matrix_share", value, shift=shift, share=i + 1))
        ends = shifted_singular_edges(deviation=DEVIATION, shift=shift)
        for name, value in zip(("low_end", "high_end"), ends, strict=True):
            rows.append(_row(name, value, shift=shift))
    for gain in GAINS:
        rise = _shares(gain, 1.0) - _shares(gain, 0.0)
        rows += [
            _row("rise", value, gain=gain, share=i + 1) for i, value in enumerate(rise)
        ]
    return Rows(rows)


def _shares(gain: float, shift: float) -> np.ndarray:
    return shifted_singular_shares(SHARES, deviation=gain * DEVIATION, shift=shift)


def _row(name: str, value: float, **labels: float) -> Row:
    return {"quantity": name, "value": float(value), "error": _ERROR, **labels}
