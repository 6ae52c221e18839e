"""The calls that a model makes, seen by listeners.

- ``listening``: :class:`Listener`, on which everything that follows, records or
  replaces calls of torch is built.

May import: torch. Start reading at ``listening``.
"""
