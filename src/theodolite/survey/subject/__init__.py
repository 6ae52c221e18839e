"""Subjects of surveys: a model with batches and a loss, from a SPEC or a live module.

- ``subject``: :class:`Subject`, a model with its batches and its loss, and
  :func:`make_subject`, for a live module.
- ``hugging_face``: inputs and labels for models of transformers.
- ``first_layer``, ``made_up``: inputs of the right shape, found from the model.
- ``targets``: labels and losses that fit the model's outputs.
- ``read_data``: named datasets, image folders, ``.npz`` files.
- ``given_batches``: batches as people give them.
- ``from_spec``: :func:`subject_of`, from a SPEC of :mod:`theodolite.networks`, and
  :func:`optimizer_of`, for a command line.

Imports ``records``. Start reading at ``subject``.
"""
