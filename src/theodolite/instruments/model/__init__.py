"""The user's model: its loss and outputs, and restoring it afterwards.

- ``objective``, ``losses``: batches, losses and outputs, and the chosen parameters.
- ``reachable_state``: modules behind callables, and what modules store on themselves.
- ``restoring``: :func:`preserve`, and models opened for passes and restored afterwards.
- ``change_detection``: whether a model changed since the last look.
- ``process_state``, ``randomness``: settings of the process, and random numbers that a
  model draws, refused or fixed by a seed.

May import: ``differentiate``. Start reading at ``objective``.
"""
