"""Load named datasets as arrays, from files that are checked first."""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
