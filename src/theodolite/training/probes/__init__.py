"""When and what to measure while something trains, whoever trains it.

Schedules say when, probes what; a board calls them and keeps their rows. A watcher
does so in somebody else's loop, and the callbacks in somebody else's library.

Those that are ready to use are this room's own names: ``from theodolite.training import
probes``, then ``probes.sharpness(Every(10))``.

Start with ``schedules``, then ``probes``, ``ready``. Touches core, instruments and
runs; no other room of training.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
