"""Networks of short residual units near the identity: Li et al. (2016).

- ``linear_network``, ``relu_network``: loss, gradient and Hessian at any weights.
- ``zero_weights``, ``zero_spectrum``: the Hessian at zero weights and its spectrum.
- ``activations``: activations with their derivatives at zero.
- ``shifted_singular``: singular values of the identity plus a random matrix.
- ``interpolation``, ``sphere_paths``: small weights that fit any data.
"""
