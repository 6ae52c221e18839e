"""Broken networks and their repaired twins, on which every finding is tried.

Start at ``pairs.py``. ``cases.py`` says what a case is, ``samples.py`` makes its data,
``layers.py`` its layers; ``sound_networks.py`` has networks in which nothing is wrong.
"""
