"""A model that belongs to somebody: what is asked of it, and leaving it as found.

- ``objective``: batches, losses and outputs, and the parameters that are meant.
- ``preservation``: :func:`preserve`, which copies all and puts it back.
- ``shelter``: the same promise for operators, which open a model again and again.
- ``running``: the same promise around single passes.
- ``randomness``: what a model draws, refused or fixed by a seed.

May touch: ``differentiate``. Start reading at ``objective``.
"""
