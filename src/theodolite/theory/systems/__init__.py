"""Bounds and derivatives of chains of known layers: MacDonald et al. (2023).

- ``nonlinearities``, ``parameterisations``: the parts of a layer.
- ``single_layer_bounds``, ``chain_bounds``, ``loss_bounds``: bounds of a layer, of a
  whole system and of its loss.
- ``jacobians``, ``kernel_bounds``: derivatives at given weights, and a lower bound of
  the tangent kernel.
"""
