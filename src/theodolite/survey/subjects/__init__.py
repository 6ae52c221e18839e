"""What is surveyed: a model with batches and a loss, from a SPEC or a live module.

- ``clothed``: :class:`Subject`, all that a survey needs to know of a model.
- ``specs``: what a SPEC says: a zoo name, ``package.module:callable(args)``,
  ``path.py:callable`` or ``hf:CONFIG.json``.
- ``zoo``, ``zoo_networks``: networks that go by a name.
- ``imported``: models of packages and files; ``hugging_face``: from local configs.
- ``weights``: safetensors and ``weights_only`` checkpoints.
- ``first_layer``, ``made_up``: inputs of the right shape, found from the model.
- ``targets``: labels and losses found from what the model puts out.
- ``read_data``: named datasets, image folders, ``.npz`` files.
- ``optimizers_named``: an optimiser as a command line writes it.
- ``dressing``: :func:`dress`, for a live module; ``from_spec``: :func:`subject_of`.

May touch: ``records``. Start reading at ``dressing``.
"""
