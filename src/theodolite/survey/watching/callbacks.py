"""Callbacks for Lightning and Hugging Face that watch a training."""

from typing import Any

from theodolite.training import lightning_callback, transformers_callback

from .plain_loop import given
from .watched import Watch


def lightning_watch(
    every: int = 100, *, loss: Any = None, batches: Any = None, **settings: Any
) -> Any:
    """Return a Lightning ``Callback`` that watches a training as :func:`watch` does.

    Numbers also go to the trainer's loggers. Batch and loss are seen if the training
    step calls the module itself, ``self(x)``; else pass ``batches`` and ``loss``.

    Args:
        every: Steps between two looks.
        loss: See :func:`watch`.
        batches: See :func:`watch`.
        settings: Further arguments of :func:`watch`, such as ``on_alert``.

    Returns:
        A callback; its ``course()`` is what was seen so far, ``rows()`` its numbers.
    """
    return _watching(lightning_callback, every, loss, batches, settings)


def transformers_watch(
    every: int = 100, *, loss: Any = None, batches: Any = None, **settings: Any
) -> Any:
    """Return a ``TrainerCallback``: see :func:`lightning_watch`.

    Batch and loss are those of the step.
    """
    return _watching(transformers_callback, every, loss, batches, settings)


def _watching(make: Any, every: int, loss: Any, batches: Any, settings: Any) -> Any:
    watched = Watch(every=every, **settings)
    callback = make([watched.probe], on_step=watched.on_step, **given(loss, batches))
    watched.retired = lambda: callback.watcher.retired
    callback.course = watched.course
    callback.rows = watched.rows
    return callback
