"""Saved runs to one self-contained HTML file.

Nothing of matplotlib or jinja2 is imported until a name of this package is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
