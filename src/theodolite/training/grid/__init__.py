"""Grids: thousands of runs of small networks, trained in stacks.

Start with ``grid``, which cuts the points of a grid (``axes``) into pieces, each a
cell of a run folder; ``pieces`` trains one of them, ``stack`` drives an engine with
probes, records and retirement, ``result`` is what comes back, ``rates`` searches
learning rates over grids, ``identity`` knows a probe again. Touches probes, loop and
engines.
"""
