"""Matrices known by their products: Hessians, Gauss-Newton matrices, Jacobians.

- ``operator``: :class:`Operator`, the base of all.
- ``vectors``: norms and products of long flat vectors, without loss; random ones, and
  rows that a solver keeps.
- ``matrix_operator``: given matrices and the identity. ``combined`` is the base of
  operators made of others: ``algebra`` (sums, multiples, compositions), ``block``
  (with vectors made of named parts) and ``inverse``.
- ``parameter_operator``: the base of those that act on a model's parameters, which
  are ``loss_hessian``, ``gauss_newton`` (and Fisher matrices) and ``jacobian``.
- ``output_curvature``: the base of ``gauss_newton``, which acts on outputs between
  two Jacobians.
- ``block_jacobian``, ``span``: Jacobians between two places of a model.
- ``derivative_check``: refuses models whose derivatives are wrong.
- ``rounding_reference``: the same operator with other rounding; ``rounding_noise``
  compares with it to bound the rounding errors of products and matrices.

May import: ``passes`` and packages before it. Start reading at ``operator``.
"""
