"""Closed-form predictions from a blueprint and data, with NumPy and SciPy only."""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
