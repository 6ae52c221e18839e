"""Residual networks as sums over paths: Littwin & Wolf (2016).

- ``length_weights``, ``dominant_lengths``: which lengths of paths count, and how much.
- ``path_model``: counts of paths, and the assumptions that lead to a spin glass.
- ``layer_scales``: how normalisation changes the scales of layers.
"""
