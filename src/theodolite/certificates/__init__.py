"""Bounds that are guaranteed for the loss of a network.

On all of parameter space or in a ball, from the layers alone, for chains of known ones:

- ``recognition``: converts a module to a system of layers and their weights.
- ``costs``: losses by name or as torch modules, with their values and gradients.
- ``conditions``: hypotheses of the theorems, whether each holds, and why.
- ``bounds``: :func:`certificate`; start reading there.

Along a segment, from the activations that the data has, for any model:

- ``tubes``: distances of tensors from the chord between two points, and rules for how
  linear, bilinear, smooth and kinked maps change them; start reading there.
- ``norms``: norms of linear maps; ``functions``, ``normalising``: smooth maps.
- ``operators``: which rule is that of which operator of torch.
- ``enclosure``: carries tubes along with a model that runs.
- ``search``: goes along the segment; ``guaranteed``: :func:`guaranteed_step`.
- ``descent``: an optimizer of such steps.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
