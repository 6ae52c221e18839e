"""Several processes that hold a part of the data each: the first inner room.

- ``processes``: :class:`Team`, which adds up over them.

May touch: ``core`` and torch. Start reading at ``processes``.
"""
