"""Instruments: measure any module on a batch, and leave the model unchanged."""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
