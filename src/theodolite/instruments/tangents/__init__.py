"""The tangent kernel as a matrix.

- ``kernel``: the instrument.
- ``work``: how the matrix is filled, block by block; ``gram`` holds it.
- ``layer_sweep``, ``layer_rows``: rows of Jacobians from what single layers saw.
- ``rows``: rows of Jacobians of any model, by pulling back.
- ``by_products``: the matrix where no process has a graph of all the data.
- ``noise``: how far the matrix is from exact arithmetic.
- ``reading``: the result.

May touch: ``solvers`` and what stands before it. Start reading at ``kernel``.
"""
