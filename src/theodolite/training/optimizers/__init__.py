"""Update rules: plain descent, and SGD that moves layers' directions and norms apart.

Start with ``descent`` and ``sphere_sgd``. ``norm_schedules`` are schedules for norms,
``parameter_groups`` sorts the parameters of a model. Imports ``instruments``.
"""
