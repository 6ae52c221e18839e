"""Numbers of an operator from its products, with an error for each.

- ``lanczos``: Krylov spaces of symmetric operators, and where their basis is kept:
  ``basis_on_host`` and ``basis_over_ranks`` keep it elsewhere than on the device.
- ``eigenpairs``: eigenvalues with residuals.
- ``certified``: eigenpairs, and a bound on eigenvalues that the search did not detect.
- ``quadrature``: bounds on the spectral distribution.
- ``bidiagonal``: singular values, of operators that need not be square.
- ``sketch``: traces and diagonals from random vectors.

May import: ``operators`` and packages before it; never a model. Start reading at
``lanczos``.
"""
