"""A plain training loop, grids of thousands of runs, and probes for any training.

Subpackages, lower ones first: ``probes``, ``optimizers``, ``loop``, ``engines``,
``grid``, ``images``, ``classifiers``. Start with :func:`train`, the plain loop, then
:func:`train_grid`.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
