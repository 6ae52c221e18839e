"""Classifiers: norms of their layers and margins, and the collapse of features.

- ``collapse_of_models``: measures neural collapse; ``collapse_meter`` is the
  accumulator, which takes any features; ``collapse_reading`` is the result.
- ``class_deviations``: deviations from class means, in few passes
  (``chunked_pass``) over ``features``; ``class_statistics``: class means and moments.
- ``collapse_numbers``: NC1 to NC5 from these, and distances from a simplex.
- ``norms_of_models``: measures norms; ``norms_reading`` holds the result and
  margins.
- ``layer_trace``: linear layers and norms in execution order; ``norm_folding``:
  norms folded into the layers beside them.
- ``labels``, ``final_layer``, ``classifier_passes``: labels, the last layer, passes in
  a norm mode.

May import: packages before it. Start reading at ``collapse_of_models``.
"""
