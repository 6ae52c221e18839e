"""A run on disk: its spec, its finished cells, and records of its launches.

Start with ``folder``; ``spec`` names it by a hash, ``cells`` defines a cell, ``atomic``
holds whole-file writes and locks, ``checked`` detects damaged files, ``launch`` records
who computed what, ``catalogue`` finds runs. Imports core only.
"""
