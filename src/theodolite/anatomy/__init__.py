"""The parts of any network, read from the graph of tensors of one forward pass.

``block_map`` cuts the pass into blocks, ``first_pass`` measures what flows through,
``opened`` holds a model for both, and ``summarising`` makes a table of it.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
