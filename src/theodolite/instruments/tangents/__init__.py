"""The tangent kernel as a matrix.

- ``kernel``: the instrument and its result.
- ``strategies``: how the matrix is filled, block by block; ``gram`` holds it and adds
  rows of Jacobians of any model.
- ``layer_sweep``, ``layer_rows``: rows of Jacobians from inputs of single layers.
- ``product_strategy``: the matrix where no process has a graph of all the data, and
  the rounding error of any of them.

May import: ``solvers`` and packages before it. Start reading at ``kernel``.
"""
