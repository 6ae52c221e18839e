"""Layers that draw random numbers, such as dropout, switched off while measuring."""

import torch
from torch import nn

from theodolite.core import NormMode
from theodolite.instruments import (
    Batch,
    Draws,
    norm_layers_as_is,
    opened,
    run_model,
    samples_in,
    slice_batch,
)

# Samples used to test whether a network draws random numbers.
_FEW = 4


def switch_off_random_layers(model: nn.Module, batch: Batch, mode: NormMode) -> bool:
    """Put modules into eval mode, so that no random numbers are drawn.

    Under ``as_is`` every module keeps its mode, unless a pass draws random numbers:
    then all modules except norm layers go into eval mode. Under other modes all do;
    the norm mode sets norm layers later. Must be called inside ``preserve``.

    Args:
        model: The model.
        batch: Data to run it on; a few samples are used.
        mode: Statistics that normalisation layers use.

    Returns:
        Whether modules were put into eval mode because a pass drew under ``as_is``.
    """
    if mode is not NormMode.AS_IS:
        model.eval()
        return False
    drew = _draws(model, batch)
    if drew:
        kept = norm_layers_as_is(model, mode).get("train", ())
        model.eval()
        for name in kept:
            model.get_submodule(name).train()
    return drew


def _draws(model: nn.Module, batch: Batch) -> bool:
    """Return whether a pass of a few samples draws random numbers."""
    if (samples_in(batch) or 0) > _FEW:
        batch = slice_batch(batch, 0, _FEW)
    with opened(model, careful=False) as before, torch.no_grad():
        before.lend_buffers()
        draws = Draws()
        try:
            run_model(model, batch)
        except Exception:  # what fails here fails in every measure, which says so
            pass
        return draws.happened()
