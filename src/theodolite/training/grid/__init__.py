"""Grids: thousands of runs of small networks, trained in stacks.

Start with ``grid``, which cuts the grid (``axes``) into pieces that a run folder
keeps; ``pieces`` trains one of them, ``stack`` drives an engine with probes, records
and retirement, ``result`` is what comes back, ``rates`` searches learning rates over
grids. Touches probes, loop and engines.
"""
