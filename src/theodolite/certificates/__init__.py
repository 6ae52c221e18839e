"""Bounds that theory guarantees for the loss of a chain of known layers.

- ``recognition``: converts a module to a system of layers and their weights.
- ``costs``: losses by name or as torch modules, with their values and gradients.
- ``conditions``: hypotheses of the theorems, whether each holds, and why.
- ``bounds``: :func:`certificate`; start reading there.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
