"""Passes of a model over all of its data, set up once and run many times.

- ``batches``: splits and joins batches.
- ``streams``: batches of a loader, read again when needed.
- ``ranks``: each rank's share of the data, and checks that they hold one model.
- ``grouping``: reads data of any kind, and makes the chunks that passes run on.
- ``problem``: a model, its data, its loss and all settings, checked once.
- ``forecast``, ``live_memory``: how much memory graphs, vectors and a basis will take.
- ``prepared_model``: model, data and norm mode together, opened for passes, and the
  graphs that products share.
- ``separability``, ``moved_results``: whether a batch is the sum of its parts, up to
  rounding.
- ``product_strategy``: the cheapest way to use statistics of all the data.
- ``set_up``: all of these in order, for an operator; which graphs fit in memory.

May import: ``differentiate``, ``model``, ``norms``. Start reading at ``set_up``.
"""
