"""Derivatives of what torch runs: the first inner room, which knows no model.

- ``derivatives``: products with Hessians and Jacobians of graphs built once.
- ``pullback``: one covector, or many at once, pulled back through a graph.
- ``twice``, ``batch_norm_twice``: operators that torch differentiates only once,
  replaced by ones that can be differentiated again.

May touch: ``core`` and torch. Start reading at ``derivatives``.
"""
