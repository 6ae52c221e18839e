"""Measurements during training, in any loop.

A schedule says when, a probe what; a board calls probes and keeps their rows. A watcher
does this in your own loop, and the callbacks in Lightning or Transformers.

Built-in probes are names of this package: ``from theodolite.training import probes``,
then ``probes.sharpness(Every(10))``.

Start with ``schedules``, then ``probe``, ``builtin``. Imports core, instruments and
runs; no other subpackage of training.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
