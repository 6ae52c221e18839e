"""Instruments of the loss Hessian.

- ``dense``, ``spectra``: the whole matrix and its eigenvalues, for small models.
- ``extremes``, ``sharpness``: extreme eigenvalues, at one point and during training.
- ``density``, ``indices``, ``conditions``: the distribution of all eigenvalues, how
  many are negative, the condition number.
- ``traces``, ``diagonals``: trace and diagonal, from random vectors.
- ``blockwise``: any of these for each part of a model.
- ``model_instruments``: lets a function of operators take models too, and checks its
  arguments; forecasts the memory of a search for eigenvalues.

May import: ``solvers`` and packages before it. Start reading at ``traces``.
"""
