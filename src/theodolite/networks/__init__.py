"""Build the papers' architectures as modules, from blueprints."""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
