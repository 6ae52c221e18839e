"""Progress at a terminal (``display``), and trackers (``trackers``, ``services``).

Imports ``folder`` for the type of a cell.
"""
