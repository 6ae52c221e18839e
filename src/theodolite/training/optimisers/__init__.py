"""Optimisers of torch's kind that move directions and norms of layers apart.

Start with ``sphere_descent``; ``norm_schedules`` are what its norms may follow, and
``direction_groups`` sorts the parameters of a model. Touches instruments.
"""
