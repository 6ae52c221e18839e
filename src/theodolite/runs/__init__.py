"""Run folders: the hash of a run's config names its folder, which keeps finished cells.

A study makes a :class:`RunFolder` from a :class:`RunSpec`, hands its cells to
:func:`execute` and reads ``folder.rows()``. If it is killed at any moment, it resumes.
Subpackages, lower ones first: ``folder``, ``progress``, ``executors``.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
