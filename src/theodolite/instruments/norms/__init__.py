"""Normalisation layers: which statistics they use, and how these are differentiated.

- ``normalisation``: the norm mode of a model's layers.
- ``given_moments``: batch norm by moments that are variables themselves.

Statistics of all the data where a pass sees one chunk of it:

- ``coupling``: chooses between the two strategies below, within the memory there is.
- ``lockstep``: all chunks go from norm to norm together. A ``tape`` keeps the calls of
  a pass, ``segments`` cuts it at the norms, a ``chunk_pass`` takes one chunk through
  all segments, a ``segment_pass`` through one. A ``tensor_store`` keeps the tensors in
  between, on the device or on the host.
- ``sequential``, ``full_statistics``: one chunk at a time, one pass over all per norm.
- ``shared_statistics``: one chunk per process, in graphs that all walk together.

May import: ``differentiate``, ``model``. Start reading at ``normalisation``, or at
``lockstep``.
"""
