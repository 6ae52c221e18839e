"""Closed-form predictions from a blueprint and data, with NumPy and SciPy only."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
