"""Passes of a model over all of its data, set up once and run many times.

- ``batches``: splits and joins batches, and lists their tensors.
- ``streams``: reads data of any kind into batches, once or again when needed.
- ``ranks``: each rank's share of the data, and checks that they hold one model.
- ``grouping``: the chunks that passes run on.
- ``problem``: a model, its data, its loss and all settings, checked once.
- ``forecast``: how much memory a graph will take, before it is built.
- ``prepared_model``: model, data and norm mode together, opened for passes.
- ``separability``, ``moved_results``: whether a batch is the sum of its parts, up to
  rounding.
- ``graph_memory``: which graphs fit in memory.
- ``product_strategy``: the cheapest way to use statistics of all the data.
- ``progress_line``: shows how far a measurement is.
- ``set_up``: all of these in order, for an operator, and the graphs that its products
  share.

May import: ``differentiate``, ``model``, ``norms``. Start reading at ``set_up``.
"""
