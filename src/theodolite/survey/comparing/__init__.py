"""Two surveys side by side: what changed, by how much, and how surely.

Start at ``two.py``, which surveys models where it must; ``matching`` pairs blocks,
``differences`` pairs rows, ``comparison`` is what comes out.
"""
