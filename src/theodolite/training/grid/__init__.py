"""Grids: thousands of runs of small networks, trained in stacks.

Start with ``grid``: it cuts the points of a grid (``axes``) into pieces, each a cell of
a run folder. ``pieces`` trains a piece, ``stack`` drives an engine and runs probes,
``result`` is what comes back, ``rates`` searches learning rates, ``probe_digest``
identifies a probe across processes. Imports ``probes``, ``loop`` and ``engines``.
"""
