"""Change a copy of any network, with a log of the changes and undo.

Start at ``operation.py``, which every operation goes through: copy, trace, alter,
check. ``trace.py`` and ``places.py`` say where in the model's code a sum is computed,
``altered.py`` changes it there; the other files hold one kind of operation each.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
