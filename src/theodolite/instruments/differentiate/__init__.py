"""Derivatives of what torch runs: an inner room that knows no model.

- ``parts``: vectors in parts, one tensor a variable.
- ``pullback``: cotangents pulled back through a graph, one or many at once.
- ``derivatives``: products with Hessians and Jacobians of graphs built once.
- ``twice``, ``batch_norm_twice``, ``batch_norm_given`` (with ``line_twice``),
  ``convolution_twice`` (with ``convolution_by_samples``), ``attention_twice``,
  ``layer_norm_twice``, ``instance_norm_twice``, ``rectifier_twice``,
  ``activations_twice``, ``embeddings``: operators that torch differentiates once,
  wrongly or slowly the second time, replaced by others.
- ``own_passes``: passes back of models themselves, by elementary operators.
- ``elementary_norms``: what norms are there.
- ``missing_weights``: ones for weights that norms with a bias lack.
- ``channels``: numbers a channel.
- ``replay``: a product recorded once as a CUDA graph.
- ``over_ranks``: sums over processes within a graph.
- ``recomputing``: activation checkpointing switched off meanwhile.

May touch: ``core``, torch, ``team``. Start reading at ``derivatives``.
"""
