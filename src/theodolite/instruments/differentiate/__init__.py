"""Derivatives of torch code; this subpackage does not know about models.

- ``derivatives``: products with Hessians and Jacobians of graphs built once: pulls
  cotangents back through a graph, one or many at once.
- ``twice``: replaces operators that torch differentiates wrongly, slowly or not at all
  the second time, passes on batch norms, and refuses functions without a second
  derivative; ``batch_norm_twice`` (with ``affine_twice``), ``layer_norm_twice``,
  ``convolution_twice`` (with ``convolution_by_samples``), ``attention_twice``,
  ``rectifier_twice``, ``activations_twice`` and ``embedding_twice`` hold replacements.
- ``elementary_norms``: norms from elementary operators, and weights of ones for norms
  that have a bias only.
- ``model_backward``: backward passes that a model makes inside its forward pass, and
  torch's transforms.
- ``replay``: records a product once as a CUDA graph.

May import: ``core``, torch, ``distributed``. Start reading at ``derivatives``.
"""
