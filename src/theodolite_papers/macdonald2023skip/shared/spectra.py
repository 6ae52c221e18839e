"""Singular values of a network of two blocks while it trains."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import Row

from .shares import SHARES

if TYPE_CHECKING:
    from torch import Tensor

# Products of this depth in single precision, in units of the Frobenius norm; a test
# holds it against double precision.
ROUNDING = 10 * float(np.finfo(np.float32).eps)
# Below this part of the largest value Gram matrices lose too many digits.
_SMALL = 1e-5


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum:
    """Singular values in ascending order, and a bound on the error of each."""

    values: np.ndarray
    error: float

    def shares(self) -> np.ndarray:
        """Return the mean of each tenth, the least first."""
        return np.array([part.mean() for part in np.array_split(self.values, SHARES)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Descent:
    """Losses before each step and after the last, and spectra at some of them."""

    losses: np.ndarray
    spectra: dict[str, list[Spectrum]]


def descend(
    network: Any,
    images: np.ndarray,
    labels: np.ndarray,
    *,
    rate: float,
    steps: int,
    spectra_at: Iterable[int],
    samples: int,
) -> Descent:
    """Train by gradient descent on one batch, in train mode, and read spectra.

    Args:
        network: A network of two blocks; it is trained in place.
        images: The batch.
        labels: Its classes.
        rate: Learning rate.
        steps: Number of steps.
        spectra_at: Steps before which spectra are read.
        samples: Samples whose Jacobians of the two blocks are taken.
    """
    import torch
    from torch.nn import functional

    weight = network.head.weight
    x = torch.tensor(images).to(weight)
    y = torch.tensor(labels).to(weight.device)
    wanted = set(spectra_at)
    losses: list[float] = []
    spectra: dict[str, list[Spectrum]] = {"composite": [], "blocks": []}
    for step in range(steps + 1):
        if step in wanted:
            for metric, found in read_spectra(network, x, samples=samples).items():
                spectra[metric].append(found)
        loss = functional.cross_entropy(network(x), y)
        losses.append(float(loss.detach()))
        if step < steps:
            parameters = list(network.parameters())
            slopes = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for parameter, slope in zip(parameters, slopes, strict=True):
                    parameter.add_(slope, alpha=-rate)
    return Descent(losses=np.array(losses), spectra=spectra)


def read_spectra(
    network: Any, images: "Tensor", *, samples: int
) -> dict[str, Spectrum]:
    """Return the spectra of a network in train mode on a batch.

    ``composite``: all scores of the batch by what the stem gives, samples coupled by
    batch statistics. ``blocks``: the two blocks alone, a Jacobian a sample with the
    statistics held at the batch's, those of the first ``samples`` taken together.
    """
    from .linearised import Linearised

    found = Linearised.of(network, images)
    return {
        "composite": _spectrum(found.composite()[None]),
        "blocks": _spectrum(found.blocks(samples)),
    }


def _spectrum(matrices: "Tensor") -> Spectrum:
    """Return all singular values of some matrices, from Gram matrices if they can."""
    import torch

    given = matrices.double()
    gram = given @ given.mT
    squares = torch.linalg.eigvalsh(gram).clamp_min(0)
    values = squares.sqrt()
    if float(values.min()) < _SMALL * float(values.max()):
        values = torch.linalg.svdvals(given)
    norm = float(torch.diagonal(gram, dim1=1, dim2=2).sum(1).max().sqrt())
    single = matrices.dtype == torch.float32
    bound = ROUNDING if single else ROUNDING * float(np.finfo(float).eps) * 2**23
    ordered = np.sort(values.cpu().numpy().ravel())
    return Spectrum(values=ordered, error=bound * norm)


def spectrum_rows(descent: Descent) -> list[Row]:
    """Return rows of the spectra averaged over the steps at which they were read."""
    rows: list[Row] = []
    for metric, spectra in descent.spectra.items():
        if not spectra:
            continue
        error = max(spectrum.error for spectrum in spectra)
        shares = np.mean([spectrum.shares() for spectrum in spectra], axis=0)
        ends = {
            "smallest": np.mean([spectrum.values[0] for spectrum in spectra]),
            "largest": np.mean([spectrum.values[-1] for spectrum in spectra]),
            "mean": np.mean([spectrum.values.mean() for spectrum in spectra]),
        }
        base = {"metric": metric, "error": error, "norm_mode": "batch"}
        rows += [
            {"quantity": "share", "share": i + 1, "value": float(value), **base}
            for i, value in enumerate(shares)
        ]
        rows += [
            {"quantity": name, "value": float(value), **base}
            for name, value in ends.items()
        ]
    return rows


def loss_rows(descent: Descent, over: tuple[int, ...]) -> list[Row]:
    """Return means of the decimal logarithm of losses over the first steps.

    A loss is exact but for the rounding of single precision.
    """
    eps = float(np.finfo(np.float32).eps)
    logs = np.log10(np.maximum(descent.losses, np.finfo(np.float64).tiny))
    return [
        {
            "quantity": "log_loss",
            "over": steps,
            "value": float(logs[1 : steps + 1].mean()),
            "error": 100 * eps,
        }
        for steps in over
    ]
