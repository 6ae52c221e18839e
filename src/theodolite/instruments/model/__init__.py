"""The user's model: its loss and outputs, and restoring it afterwards.

- ``objective``: batches, losses and outputs; ``misfits`` says why they do not fit.
  ``losses`` and ``function_model`` make modules of functions.
- ``reachable_state``: the chosen parameters, modules behind callables, what modules
  store on themselves, and whether any of it changed since the last look.
- ``restoring``: :func:`preserve`, and models opened for passes and restored afterwards.
- ``process_state``: settings of the process while something is measured, random numbers
  that a model draws, and the count of products, which ``progress_line`` shows.

May import: ``differentiate``. Start reading at ``objective``.
"""
