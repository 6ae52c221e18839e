"""Sick networks and their healthy twins, on which every finding is tried.

Start at ``pairs.py``. ``patients.py`` says what a patient is, ``samples.py`` draws what
it learns from, ``bricks.py`` what it is made of; ``standards.py`` are networks as they
are found in the world, which ought to be left in peace.
"""
