"""Any chain of known layers and a batch to what theory guarantees of its loss.

- ``recognising``: a module to its system of layers and their weights.
- ``balls``: where the parameters of each layer may lie.
- ``costs``: losses by name or as torch modules, with their values and gradients.
- ``conditions``: hypotheses of the theorems, each with whether it holds and why.
- ``certifying``: :func:`certificate`; start reading there.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
