"""The parts of any network, read off the graph of tensors that one run creates."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
