"""The parts of any network, read from the graph of tensors of one forward pass."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
