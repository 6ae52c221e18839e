"""Passes of a model over all of its data, set up once and made again and again.

- ``batches``: whatever holds data, read into batches; cut, joined, counted.
- ``grouping``: the chunks that passes take, so that a partition means what it says.
- ``forecast``: how much memory a graph will take, before it is built.
- ``stage``: model, data and norm mode together, opened for passes.

May touch: ``differentiate``, ``model``, ``norms``. Start reading at ``stage``.
"""
