"""Bounds that are guaranteed for the loss of a network.

On all of parameter space or in a ball, from the layers alone, for chains of known ones:

- ``recognition``: converts a module to a system of layers and their weights.
- ``costs``: losses by name or as torch modules, with their values and gradients.
- ``conditions``: hypotheses of the theorems, whether each holds, and why.
- ``bounds``: :func:`certificate`; start reading there.

Along a segment, from the activations that the data has, for any model:

- ``intervals``: arithmetic with outward rounding; ``series``: intervals of value, slope
  and curvature along a segment.
- ``functions``, ``softmax``, ``pools``: nonlinear operators; ``operators``: all.
- ``enclosure``: carries series along with a model that runs.
- ``guaranteed``: :func:`guaranteed_step`; start reading there.
- ``descent``: an optimizer of such steps.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
