"""Where cells are computed: this process, a pool of processes, Ray.

Start with ``task``, which computes one cell, then ``execution``, which computes all
cells of a folder. Imports ``folder`` and ``progress``.
"""
