"""An altered copy of any network, with the log of its changes and a way back.

Start at ``operation.py``, which every operation goes through: copy, read, alter, check.
``transcript.py`` and ``places.py`` say where in somebody's code a sum is made,
``altered.py`` changes it there; each remaining file is one kind of operation.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
