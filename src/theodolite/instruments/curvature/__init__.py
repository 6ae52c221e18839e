"""Instruments of the loss Hessian.

- ``dense``, ``spectra``: the whole matrix and its eigenvalues, for small models.
- ``extremes``, ``sharpness``: eigenvalues at the ends, at a point and along training.
- ``density``, ``indices``, ``conditions``: the distribution of all eigenvalues, how
  many are negative, how far they spread.
- ``traces``, ``diagonals``: from random vectors.
- ``forecasting``: what such a search will take.
- ``blockwise``: any of these for each part of a model.
- ``measured``: what makes an instrument of the Hessian from a function of operators.

May touch: ``solvers`` and what stands before it. Start reading at ``traces``.
"""
