"""Classifiers: norms of their layers and margins, collapse of features, interpolation.

- ``collapse_of_models``: the instrument of neural collapse; ``collapse_meter`` the
  accumulator behind it, for features from anywhere, ``collapse_reading`` the result.
- ``kept_features``: features at hand, by few passes (``chunked_pass``) over ``pieces``;
  ``class_moments``: those that are not; ``between``: class means and what lies between.
- ``collapse_numbers``: NC1 to NC5 from these; ``simplex``: how near vectors are to one.
- ``norms_of_models``: the instrument of norms and ``margins``; ``norms_reading`` the
  result.
- ``layer_trace``: linear layers and norms as a pass meets them; ``folding``: norms
  folded into the layers beside them.
- ``terminal_phase``: when training error vanishes, and whether for good.
- ``labelling``, ``feature_rows``, ``final_layer``, ``judged_passes``: labels, features,
  the last layer, passes in a norm mode.

May touch: what stands before it. Start reading at ``collapse_of_models``.
"""
