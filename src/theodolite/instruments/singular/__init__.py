"""Singular values of the Jacobian of a model, or of a part of it.

- ``values``: the instrument.
- ``dense_values``: exact values of Jacobians that fit in memory, sample by sample.
- ``sample_blocks``: the Jacobians of single samples, from few cotangents.
- ``quadrature_values``: bounds where matrices would not fit; the result.

May import: ``solvers`` and packages before it. Start reading at ``values``.
"""
