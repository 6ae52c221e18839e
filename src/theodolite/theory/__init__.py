"""Closed forms: blueprint and data to arrays, in NumPy and SciPy alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
