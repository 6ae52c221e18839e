"""Code shared by all packages: blueprints, readings, rows, verdicts, statistics."""

from .arguments import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
