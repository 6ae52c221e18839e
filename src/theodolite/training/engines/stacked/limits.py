"""What a fused kernel cannot take, whichever it is."""

from dataclasses import dataclass

import torch

from theodolite.core import ShortcutBlueprint

# Beyond three matrices a unit, recomputing them costs more than it saves.
_MATRICES = 3
# Kernels count entries in 32 bits.
_ENTRIES = 2**31


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a fused kernel in float32 goes.

    Attributes:
        width: Widest layers.
        block: Samples of a block, if a last one is filled up.
    """

    width: int
    block: int = 0

    def exceeded(
        self, blueprint: ShortcutBlueprint, samples: int, dtype: torch.dtype
    ) -> str | None:
        """Say what is beyond them, if anything."""
        if dtype != torch.float32:
            return f"{str(dtype).removeprefix('torch.')}"
        if blueprint.width > self.width:
            return f"width {blueprint.width}, only up to {self.width}"
        if blueprint.shortcut > _MATRICES:
            return f"shortcut {blueprint.shortcut}, only up to {_MATRICES}"
        if (samples + self.block) * blueprint.width >= _ENTRIES:
            return f"{samples} samples of width {blueprint.width} at once"
        return None
