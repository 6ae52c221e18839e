"""Classifiers: norms of their layers and margins, collapse of features, interpolation.

- ``collapse_of_models``: the instrument of neural collapse; ``collapse_meter`` the
  accumulator behind it, for features from anywhere, ``collapse_reading`` the result.
- ``class_deviations``: features around their class means, by few passes
  (``chunked_pass``) over ``features``; ``class_statistics``: class means and moments.
- ``collapse_numbers``: NC1 to NC5 from these, and distances to a simplex.
- ``norms_of_models``: the instrument of norms; ``norms_reading`` the result, and
  margins.
- ``layer_trace``: linear layers and norms in the order of a pass; ``norm_folding``:
  norms folded into the layers beside them.
- ``terminal_phase``: when training error vanishes, and whether for good.
- ``labels``, ``final_layer``, ``classifier_passes``: labels, the last layer, passes in
  a norm mode.

May touch: what stands before it. Start reading at ``collapse_of_models``.
"""
