"""Singular values of a network of two blocks during training."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import data, instruments
from theodolite.core import ConfigError, Row, named_rows, stream

from .reads import SHARES

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class FewImages:
    """Grey images (samples, 1, side, side) and their classes."""

    images: np.ndarray
    labels: np.ndarray


def few_images(
    dataset: str, samples: int, *, seed: int, standardised: bool = True
) -> FewImages:
    """Draw grey images at random from a training set, without repetition.

    Standardised pixels have mean 0 and deviation 1 over all of the set, as the paper
    says; others lie between 0 and 1, as in its published script.
    """
    images, labels = _images(dataset, standardised)
    if not 2 <= samples <= len(labels):
        raise ConfigError(
            f"samples is {samples}: {dataset} has {len(labels)}, and batch "
            "normalisation wants at least 2"
        )
    drawn = stream(seed, "images").choice(len(labels), size=samples, replace=False)
    return FewImages(images=images[drawn], labels=labels[drawn])


@cache
def _images(dataset: str, standardised: bool) -> tuple[np.ndarray, np.ndarray]:
    train = data.load(dataset, "train")
    if train.inputs.ndim != 3:
        raise ConfigError(
            f"{dataset} has inputs of shape {train.inputs.shape[1:]}: grey images are "
            "wanted, such as those of mnist5k or digits"
        )
    if standardised:
        images, _ = data.standardise_channels(train.inputs, np.float64)
    else:
        whole = np.asarray(train.inputs, dtype=np.float64)
        images = whole / whole.max()
    return images.reshape(len(images), 1, *train.inputs.shape[1:]), train.labels


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
    """Losses before each step and after the last, and spectra at some of them.

    Attributes:
        losses: Losses.
        slopes: Squared norms of the gradient before each step.
        spectra: Spectra by metric.
        parameters: Spectra of all scores by the parameters, by step.
    """

    losses: np.ndarray
    slopes: np.ndarray
    spectra: dict[str, list[Spectrum]]
    parameters: dict[int, Spectrum]


def descend(
    network: Any,
    images: np.ndarray,
    labels: np.ndarray,
    *,
    rate: float,
    steps: int,
    spectra_at: Iterable[int],
    samples: int,
    parameters_at: Iterable[int] = (),
) -> Descent:
    """Train by gradient descent on one batch, in train mode, and read spectra.

    The network of two blocks is trained in place. Spectra are read before the steps
    ``spectra_at``; Jacobians of the two blocks are taken at ``samples`` samples.
    Before ``parameters_at`` those of all scores by the parameters are read as well.
    """
    import torch
    from torch.nn import functional

    weight = network.head.weight
    x = torch.tensor(images).to(weight)
    y = torch.tensor(labels).to(weight.device)
    wanted, of_parameters = set(spectra_at), set(parameters_at)
    losses: list[float] = []
    squares: list[float] = []
    spectra: dict[str, list[Spectrum]] = {"composite": [], "blocks": []}
    by_parameters: dict[int, Spectrum] = {}
    for step in range(steps + 1):
        if step in wanted:
            for metric, spectrum in read_spectra(network, x, samples=samples).items():
                spectra[metric].append(spectrum)
        if step in of_parameters:
            by_parameters[step] = _by_parameters(network, x)
        loss = functional.cross_entropy(network(x), y)
        losses.append(float(loss.detach()))
        if step < steps:
            parameters = list(network.parameters())
            slopes = torch.autograd.grad(loss, parameters)
            squares.append(sum(float((slope.double() ** 2).sum()) for slope in slopes))
            with torch.no_grad():
                for parameter, slope in zip(parameters, slopes, strict=True):
                    parameter.add_(slope, alpha=-rate)
    return Descent(
        losses=np.array(losses),
        slopes=np.array(squares),
        spectra=spectra,
        parameters=by_parameters,
    )


def _by_parameters(network: Any, images: "Tensor") -> Spectrum:
    """Return the spectrum of all scores by all parameters, from the tangent kernel."""
    twice = deepcopy(network).double()  # roots of small eigenvalues want the digits
    kernel = instruments.tangent_kernel(
        twice, images.double(), norm_mode="batch", certify=False
    )
    squares = np.linalg.eigvalsh(kernel.matrix)
    # Weyl: eigenvalues move by at most the norm of the entries' errors.
    error = len(squares) * kernel.matrix_error
    values = np.sqrt(np.clip(squares, 0, None))
    return Spectrum(values=values, error=float(np.sqrt(error)))


def read_spectra(
    network: Any, images: "Tensor", *, samples: int
) -> dict[str, Spectrum]:
    """Return the spectra of a network in train mode on a batch.

    ``composite``: all scores of the batch by what the stem gives, samples coupled by
    batch statistics. ``blocks``: the two blocks alone, a Jacobian per sample with the
    statistics held at the batch's, those of the first ``samples`` taken together.
    """
    from .linearised import Linearised

    linear = Linearised.of(network, images)
    return {
        "composite": _spectrum(linear.composite()[None]),
        "blocks": _spectrum(linear.blocks(samples)),
    }


def _spectrum(matrices: "Tensor") -> Spectrum:
    """Return all singular values of some matrices, from Gram matrices if possible."""
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
    """Return rows of the spectra averaged over the steps at which they were read.

    Those by the parameters are rows of each step.
    """
    rows: list[Row] = []
    listed: list[tuple[list[Spectrum], dict[str, Any]]] = [
        (spectra, {"metric": metric})
        for metric, spectra in descent.spectra.items()
        if spectra
    ]
    listed += [
        ([one], {"metric": "parameters", "step": step})
        for step, one in descent.parameters.items()
    ]
    for spectra, labels in listed:
        error = max(spectrum.error for spectrum in spectra)
        shares = np.mean([spectrum.shares() for spectrum in spectra], axis=0)
        ends = {
            "smallest": np.mean([spectrum.values[0] for spectrum in spectra]),
            "largest": np.mean([spectrum.values[-1] for spectrum in spectra]),
            "mean": np.mean([spectrum.values.mean() for spectrum in spectra]),
        }
        of = {**labels, "norm_mode": "batch"}
        for i, value in enumerate(shares, start=1):
            rows += named_rows({"share": value}, error, share=i, **of)
        rows += named_rows(ends, error, **of)
    return rows


def loss_rows(descent: Descent, over: tuple[int, ...]) -> list[Row]:
    """Return means of the decimal logarithm of losses over the first steps.

    A loss is exact except for the rounding of single precision.
    """
    eps = float(np.finfo(np.float32).eps)
    logs = np.log10(np.maximum(descent.losses, np.finfo(np.float64).tiny))
    rows: list[Row] = []
    for steps in over:
        mean = {"log_loss": logs[1 : steps + 1].mean()}
        rows += named_rows(mean, 100 * eps, over=steps)
    return rows


def curve_rows(descent: Descent) -> list[Row]:
    """Return the loss before each step and after the last."""
    error = 100 * float(np.finfo(np.float32).eps)
    return [
        row
        for step, loss in enumerate(descent.losses)
        for row in named_rows({"loss": loss}, error, step=step)
    ]
