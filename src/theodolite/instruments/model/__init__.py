"""A model that belongs to somebody: what is asked of it, and leaving it as found.

- ``objective``: batches, losses and outputs, and the parameters that are meant.
- ``reach``: modules behind callables, and what modules keep on themselves.
- ``as_found``: :func:`preserve`, and models opened for passes, as found afterwards.
- ``fingerprint``: whether a model changed since it was last looked at.
- ``randomness``: what a model draws, refused or fixed by a seed.

May touch: ``differentiate``. Start reading at ``objective``.
"""
