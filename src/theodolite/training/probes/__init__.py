"""Measurements during training, in any loop.

A schedule says when, a probe what; a board calls probes and keeps their rows. A watcher
does this in your own loop, and the callbacks in Lightning or Transformers.

Built-in probes are names of this package: ``from theodolite.training import probes``,
then ``probes.sharpness(Every(10))``.

Start with ``schedules``, then ``probe``, ``builtin``. Imports core, instruments and
runs; no other subpackage of training.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
