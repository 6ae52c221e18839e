"""Who is told of finished cells: a reader at a terminal, and trackers.

Start with ``progress``. Touches the folder's notion of a cell.
"""
