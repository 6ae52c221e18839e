"""Draw figures from rows, in one style; computes nothing.

Nothing of matplotlib is imported until a name of this package is used.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
