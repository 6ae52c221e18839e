"""Numbers of an operator from its products, with an error for each.

- ``lanczos``: Krylov spaces of symmetric operators.
- ``eigenpairs``: eigenvalues with residuals.
- ``missed``: how large an eigenvalue may be that a search has not shown.
- ``certified``: eigenpairs, and that none beyond them was missed.
- ``quadrature``: bounds on the spectral distribution.
- ``simultaneous``: what makes bands hold at all points at once.
- ``bidiagonal``: singular values, of operators that need not be square.
- ``sketch``: traces and diagonals from random vectors.
- ``blocks``: vectors that are multiplied at once.
- ``sums``: norms and products of long vectors, without loss.
- ``basis``, ``basis_on_host``, ``basis_over_ranks``: the vectors that solvers keep.
- ``fitting``, ``placement``: what that will take, and where there is room.
- ``checks``: what solvers ask of an operator and of their settings.

May touch: ``operators`` and what stands before it; never a model. Start reading at
``lanczos``.
"""
