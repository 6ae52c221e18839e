"""Normalisation layers: whose statistics they take, and how those are differentiated.

- ``normalisation``: the norm mode of a model's layers.
- ``batch_norm_calls``: every call of a batch norm, in any model, met on its way.
- ``given_moments``: batch norm by moments that are variables of their own.

Statistics of all the data where a pass sees a chunk of it:

- ``coupling``: which of the two ways below, within the memory there is.
- ``in_step``: all chunks from norm to norm together; a pass is kept as a ``tape``, cut
  into ``segments``, each of which a chunk on its ``march`` takes in a ``crossing``; a
  ``shelf`` keeps what it carries from one to the next.
- ``by_turns``, ``full_statistics``: one chunk at a time, a pass over all a norm.
- ``over_ranks``: a chunk a process, in graphs that all of them walk together.

May touch: ``differentiate``, ``model``. Start reading at ``normalisation``, or at
``in_step``.
"""
