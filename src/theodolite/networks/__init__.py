"""Make modules: architectures of papers from blueprints, others from SPECs."""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
