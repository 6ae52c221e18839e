"""Classifiers: norms of their layers and margins, collapse of features, interpolation.

- ``collapse_of_models``: the instrument of neural collapse; ``collapse_meter`` the
  accumulator behind it, for features from anywhere, ``collapse_reading`` the result.
- ``kept_features``: exact sums over features at hand; ``class_moments``: over those
  that are not; ``simplex``: how near class means and a head are to a simplex.
- ``norms_of_models``: the instrument of norms and margins; ``norms_reading`` the
  result.
- ``layer_trace``: linear layers and norms as a pass meets them; ``folding``: norms
  folded into the layers beside them.
- ``terminal_phase``: when training error vanishes, and whether for good.
- ``labelling``, ``final_layer``, ``judged_passes``, ``team``: labels, the last layer,
  passes in a norm mode, several processes.

May touch: every inner room but ``spheres``. Start reading at ``collapse_of_models``.
"""
