"""Several processes that each hold a part of the data.

- ``processes``: :class:`Team`, which sums over them.
- ``heartbeat``: which processes are still alive; ``exit_notice``: notifies the others
  when this one exits.

May import: ``core`` and torch. Start reading at ``processes``.
"""
