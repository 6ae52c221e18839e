"""Instruments: measure any module on a batch, and leave the model unchanged."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
