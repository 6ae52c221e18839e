"""Critical points of energies on spheres.

Start reading at ``counting``, which searches all critical points of an energy and says
whether it has them; ``search`` holds the search and its result, ``newton`` is Newton's
method from many starts at once. An energy is any callable that maps rows of points to
energies; it is differentiated by its points, never changed.
"""
