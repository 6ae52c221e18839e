"""Compare two surveys: what changed, by how much, and with which error.

Start at ``two.py``, which surveys models if needed; ``differences`` pairs blocks
and rows, ``comparison`` holds the result.
"""
