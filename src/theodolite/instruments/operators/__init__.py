"""Matrices known by their products: Hessians, Gauss-Newton matrices, Jacobians.

- ``operator``: :class:`Operator`, the base of all.
- ``drawing``: random vectors for any of them.
- ``parameter_operator``: the base of those that act on a model's parameters, which
  are ``loss_hessian``, ``gauss_newton``, ``fisher`` and ``jacobian``.
- ``output_map``: outputs as a function of the parameters, for the last three.
- ``through_outputs``: the base of those that act on outputs between two Jacobians.
- ``tangent``: the tangent kernel as an operator.
- ``block_jacobian``, ``span``: Jacobians between two places of a model.
- ``twin``: the same operator with other rounding; ``graph_noise`` and ``matrix_noise``
  measure by it how far products and matrices are from exact arithmetic.
- ``far``: an operator of a crew, which stands for those that members have by
  ``station``.

May touch: ``passes`` and what stands before it. Start reading at ``operator``.
"""
