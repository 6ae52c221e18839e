"""A model opened for all measures of a survey, and left as found behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from theodolite.core import NormMode
from theodolite.instruments import apply_norm_mode, preserve, read_batches
from theodolite.survey.measures.site import Site


def _load() -> None:
    """Load what is slow to load and no part of any measure, before time is counted."""
    import scipy.stats  # noqa: F401
    import torch._dynamo  # noqa: F401  # which torch loads when a pass is recorded


@contextmanager
def opened_site(
    model: nn.Module, batches: Any, *, norm_mode: NormMode | str, **settings: Any
) -> Iterator[Site]:
    """Open a model: in eval mode, so that nothing is drawn, but for its norms.

    Args:
        model: Any module; bit for bit as found behind, also after exceptions.
        batches: The data.
        norm_mode: Statistics that normalisation layers use.
        settings: Passed on to :class:`~theodolite.survey.measures.site.Site`.
    """
    _load()
    model = getattr(model, "_orig_mod", model)  # of a compiled one
    mode = NormMode(norm_mode)
    modes = {name: module.training for name, module in model.named_modules()}
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with preserve(model):
            model.eval()
            if mode is not NormMode.EVAL:
                apply_norm_mode(model, NormMode.BATCH, lambda: None)
            yield Site(
                model=model,
                batches=read_batches(batches),
                norm_mode=mode,
                modes=modes,
                **settings,
            )
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
