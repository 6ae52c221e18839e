"""Any residual module and a batch to its ensemble of paths, the model left as found.

With gates frozen at the true forward pass a residual network is a sum over paths; they
are told by how many branches they take.

- ``maps``, ``tape``, ``aliases``, ``rules/``, ``tracing``: one pass written down as
  affine steps.
- ``propagate``: polynomials in a common scale of all branches, through those steps.
- ``law``, ``energies``, ``reading``: what is read off the coefficients.
- ``marks``, ``frozen_model``, ``chunks``: what counts, of which model, how much
- ``measuring`` with ``collected`` and ``assembly``: :func:`path_ensemble`.
- ``lesions`` with ``reroute``: :func:`lesion`; ``unravelled``: :func:`unravel`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
