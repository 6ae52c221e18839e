"""Saved runs to self-contained HTML pages.

Nothing of matplotlib or jinja2 is imported until a name of this package is used.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
