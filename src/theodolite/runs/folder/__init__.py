"""A run on disk: its spec, its finished cells, where they come from.

Start with ``folder``; ``spec`` names it by a hash, ``cells`` says what a cell is,
``atomic`` and ``lock`` keep processes from harming one another, ``checked`` knows what
was damaged since, ``launch`` and ``origin`` say who computed what, ``catalogue`` finds
runs. Touches core only.
"""
