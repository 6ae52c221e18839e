"""The parts of any network, read from the graph of tensors of one forward pass."""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
