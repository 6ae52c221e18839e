"""Spectra told by equal shares, and what it means that one lies above another."""

from theodolite.core import Select, Test, each, ordered

# The mean singular value of each of so many equal shares, the least first.
SHARES = 10


def shifted_up(low: Select, high: Select, *, name: str = "") -> Test:
    """Judge whether every share of a spectrum is above that of another, paired.

    Quantile by quantile is the stochastic order of the two distributions.
    """
    return each(
        "share",
        low,
        lambda share: ordered(low.at(share=share), high.at(share=share)),
        least=SHARES,
        name=name,
    )
