"""Papers as executable studies: predict, measure, draw, judge."""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
