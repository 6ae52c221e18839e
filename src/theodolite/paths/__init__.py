"""Measure the paths of any residual module on a batch; the model is not changed.

With gates frozen at the true forward pass a residual network is a sum over paths, which
are grouped by how many branches they take.

- ``tape``, ``rules/``, ``tracing``: one pass as affine steps.
- ``propagate``: polynomials in a common scale of all branches, through those steps.
- ``energies``, ``reading``: the results computed from the coefficients.
- ``branches``, ``frozen_model``: the branches, and the model that is measured.
- ``ensemble`` with ``assembly``: :func:`path_ensemble`.
- ``lesions``: :func:`lesion`; ``single_paths``: :func:`unravel`.
"""

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
