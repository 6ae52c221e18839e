"""Passes of a model over all of its data, set up once and made again and again.

- ``batches``: one batch of any make: its tensors and samples, cut and joined.
- ``streams``: whatever holds data, read into batches, or again as they are needed.
- ``sharing``: the share of one rank of a team; ``one_model``: the model of all ranks.
- ``grouping``: the chunks that passes take, so that a partition means what it says.
- ``forecast``: how much memory a graph will take, before it is built.
- ``prepared_model``: model, data and norm mode together, opened for passes.
- ``inspection``, ``graph_memory``: a first look at a model, and what of it fits.
- ``whole_data``, ``ways``: which way to statistics of all the data is the cheapest.
- ``graph_cache``, ``offloading``: graphs that many products walk, here or on the host.
- ``set_up``: all of these in order, for an operator.

May touch: ``differentiate``, ``model``, ``norms``. Start reading at ``set_up``.
"""
