"""Singular values of the Jacobian of a model, or of a part of it.

- ``values``: the instrument.
- ``per_sample``: exactly, a sample at a time.
- ``sample_blocks``: the Jacobians of single samples, from few cotangents.
- ``supports``: which inputs reach which outputs, so that rows share cotangents.
- ``gram``: singular values of a matrix, from its Gram matrix.
- ``by_quadrature``: bounds, where matrices would not fit.
- ``over_ranks``: from processes that hold samples each.
- ``reading``: the result.

May touch: ``solvers`` and what stands before it. Start reading at ``values``.
"""
