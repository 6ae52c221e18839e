"""What a network is made of, read off the graph of tensors that one run makes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
