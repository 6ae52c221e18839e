"""Every path of a network with few branches, one by one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import (
    MeasurementError,
    NormMode,
    Reading,
    Status,
    Stopwatch,
)
from theodolite.instruments import Batch, Outputs, measuring

from .branches import without
from .energies import standard_error
from .frozen_model import subject_of

# Outputs of all sub-networks are kept, so that there are 2 to this power of them.
MOST_BRANCHES = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class UnravelledPaths(Reading):
    """Energy of the paths through each set of branches, gates frozen.

    Attributes:
        energy: Mean over samples and outputs of the squared contribution.
        alignment: Inner product of the contribution and the output, divided by the
            output's square; adds up to 1.
        paths: One digit per branch, in order: 1 if the path takes it.
        places: Module of each branch's addition.
        residual: Relative distance of the contributions' sum from the output.
    """

    dims: ClassVar = {
        "energy": ("path",),
        "energy_error": ("path",),
        "alignment": ("path",),
        "residual": (),
    }
    error_of: ClassVar = {"energy": "energy_error"}

    energy: np.ndarray
    energy_error: np.ndarray
    alignment: np.ndarray
    residual: float
    paths: tuple[str, ...]
    places: tuple[str, ...]

    def coordinates(self) -> dict[str, list]:
        """Return the branches that each path takes."""
        return {"path": list(self.paths)}


@measuring()
def unravel(
    model: nn.Module,
    batch: Batch,
    *,
    norm_mode: NormMode | str,
    linearise: bool = False,
    promote: bool = True,
    outputs: Outputs | None = None,
) -> UnravelledPaths:
    r"""Return the contribution of every single path of a network with few branches.

    All $2^n$ sub-networks run with gates frozen, and inclusion–exclusion gives the
    contribution of each set of branches. It is exact to the rounding of the output:
    tiny contributions are lost, while :func:`path_ensemble` keeps them.

    Args:
        model: Any module with at most ten branches; not changed.
        batch: A tensor, a pair (inputs, targets) or a mapping of keywords.
        norm_mode: Statistics that norms use; held constant in all modes.
        linearise: As in :func:`path_ensemble`.
        promote: Measure a model of lower precision by a copy in float64.
        outputs: ``outputs(model, batch)`` runs the model, where a call on the inputs
            does not return one tensor.

    Example:
        >>> from theodolite.core import ShortcutBlueprint
        >>> from theodolite.networks import build, set_weights
        >>> net = build(ShortcutBlueprint(width=2, depth=2, shortcut=1), seed=0)
        >>> set_weights(net, 0.5 * np.stack([np.eye(2), np.eye(2)]))
        >>> x = torch.ones(3, 2, dtype=torch.float64)
        >>> result = unravel(net, x, norm_mode="eval")
        >>> dict(zip(result.paths, result.energy.tolist()))
        {'00': 1.0, '10': 0.25, '01': 0.25, '11': 0.0625}
    """
    watch = Stopwatch()
    subject = subject_of(
        model, batch, outputs=outputs, norm_mode=norm_mode, promote=promote
    )
    with subject.frozen(), torch.no_grad():
        tape, branches = subject.trace_branches(subject.batch, linearise=linearise)
        count = len(branches)
        if count > MOST_BRANCHES:
            raise MeasurementError(
                f"the network has {count} branches, and single paths are listed for at "
                f"most {MOST_BRANCHES}: use path_ensemble, which gathers paths by "
                "length"
            )
        # The bits of a number say which branches are taken.
        sets = [[n >> place & 1 for place in range(count)] for n in range(2**count)]
        values = torch.stack(
            [
                without(
                    tape, [b for b, on in zip(branches, taken, strict=True) if not on]
                )
                for taken in sets
            ]
        )
    parts = _differences(values, count)
    whole = tape.value
    flat = parts.flatten(2) if parts.ndim > 2 else parts[..., None]
    squares = flat.square().mean(2).T.cpu().double().numpy()
    product = (parts * whole).flatten(1).sum(1) / whole.square().sum()
    gap = (parts.sum(0) - whole).norm() / whole.norm()
    return UnravelledPaths(
        energy=squares.mean(0),
        energy_error=standard_error(squares),
        alignment=product.cpu().double().numpy(),
        residual=float(gap),
        paths=tuple("".join(map(str, taken)) for taken in sets),
        places=tuple(branch.module for branch in branches),
        status=Status.EXACT if torch.isfinite(gap) else Status.NONFINITE,
        norm_mode=subject.norm_mode,
        norm_layers=subject.norm_layers,
        cost=watch.read(),
        method="float64 twin" if subject.promoted else "direct",
    )


def _differences(values: Tensor, count: int) -> Tensor:
    """Turn outputs of all sub-networks into contributions of sets of branches."""
    parts = values.clone()
    numbers = torch.arange(len(parts), device="cpu")
    for place in range(count):
        taken = (numbers >> place) & 1 == 1
        parts[taken] = parts[taken] - parts[~taken]
    return parts
