"""Several processes that hold a part of the data each: the first inner room.

- ``processes``: :class:`Team`, which adds up over them.
- ``waiting``: a call that all make together, in which none waits for ever; ``watch``:
  who is still there; ``ending``: a process that its launcher ends; ``farewell``: one
  that ends by itself; ``wording``: what is said of errors.
- ``vectors``: vectors that all of them multiply.
- ``crews``: processes elsewhere that answer one script, as an executor offers them;
  ``joining``: how they come to be a group.

May touch: ``core`` and torch. Start reading at ``processes``.
"""
