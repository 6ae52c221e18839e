"""Normalisation layers: whose statistics they take, and how those are differentiated.

- ``normalisation``: the norm mode of a model's layers.
- ``batch_norm_calls``: every call of a batch norm, in any model, met on its way.
- ``full_statistics``: statistics of all the data where a pass sees a part of it.

May touch: ``differentiate``, ``model``. Start reading at ``normalisation``.
"""
