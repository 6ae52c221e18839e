"""Several processes that hold a part of the data each: the first inner room.

- ``processes``: :class:`Team`, which adds up over them.
- ``waiting``: a call that all make together, in which none waits for ever; ``watch``:
  who is still there; ``ending``: a process that its launcher ends.

May touch: ``core`` and torch. Start reading at ``processes``.
"""
