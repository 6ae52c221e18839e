"""Networks of short residual units near the identity: Li et al. (2016).

- ``linear_network``, ``relu_network``: loss, gradient and Hessian at any weights.
- ``zero_weights``: activations, and the Hessian at zero weights with its spectrum.
- ``toeplitz``: the spectrum of a block Toeplitz matrix, which it is for shortcuts of 1.
- ``shifted_singular``: singular values of the identity plus a random matrix.
- ``interpolation``, ``sphere_paths``: small weights that fit any data.
"""
