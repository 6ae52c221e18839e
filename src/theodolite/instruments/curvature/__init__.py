"""Instruments of the loss Hessian.

- ``dense``, ``spectra``: the whole matrix and its eigenvalues, for small models.
- ``extremes``, ``sharpness``: eigenvalues at the ends, at a point and along training.
- ``density``, ``indices``, ``conditions``: the distribution of all eigenvalues, how
  many are negative, how far they spread.
- ``traces``, ``diagonals``: from random vectors.
- ``blockwise``: any of these for each part of a model.
- ``model_instruments``: makes an instrument of models from a function of operators;
  forecasts the memory of a search for eigenvalues.

May touch: ``solvers`` and what stands before it. Start reading at ``traces``.
"""
