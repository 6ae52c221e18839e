"""Gradient flow and gradient descent with known solutions or bounds.

- ``quadratic_descent``: descent on a quadratic model, and its stable rates.
- ``linear_flow``, ``normalised_flow``, ``norm_dynamics``, ``layer_constraint``,
  ``margin_bounds``: classifiers under the square loss, Poggio & Liao (2020).
- ``entry_descent``, ``stalled_network``, ``vanishing_regularity``: normalised weights,
  MacDonald et al. (2023), theorem 5.1.
"""
