"""Draw figures from rows, in one style; computes nothing.

Nothing of matplotlib is imported until a name of this package is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
