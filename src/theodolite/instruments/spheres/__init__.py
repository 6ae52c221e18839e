"""Energies on spheres, and where they stand still.

Start reading at ``counting``, which looks for all critical points of an energy and says
whether it has them; ``descents`` is Newton's method from many starts at once,
``distinct`` tells found points apart, ``found`` is the reading. Any callable that maps
rows of points to energies will do; it is differentiated by its points, never changed.
"""
