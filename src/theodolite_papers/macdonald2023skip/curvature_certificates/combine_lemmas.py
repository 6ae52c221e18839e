"""Derivatives of affine layers and normalisations: formulas against autodiff."""

from collections.abc import Callable
from typing import Any

import numpy as np

from theodolite.core import Row, named_rows, stream
from theodolite.theory import (
    centred_norm_derivatives,
    entry_norm_derivatives,
    weight_norm_derivatives,
)

from .config import Config

TINY = 1e-13
SHAPE = (2, 3)  # of weights; of the rows of a batch, features and samples


def lemmas(config: Config) -> list[Row]:
    """Return distances of formulas from autodiff."""
    rows: list[Row] = []
    for trial in config.seeds:
        rng = stream(config.seed, "lemmas", trial)
        w, eps = rng.normal(size=SHAPE), float(10 ** rng.uniform(-1, 1))
        found = _affine(rng) | _batch_norm(w, eps) | _weight_norm(w, eps)
        rows += named_rows(found | _entry_norm(w, eps), TINY, trial=trial)
    return rows


def _affine(rng: np.random.Generator) -> dict[str, float]:
    """Equations 17, 18, 20 and 21, vectorised by rows, and by columns."""
    import torch

    a, b, x = (rng.normal(size=s) for s in ((2, 3), (2, 1), (3, 4)))

    def run(*parts: Any) -> Any:
        return parts[0] @ parts[2] + parts[1]

    given = tuple(torch.tensor(part) for part in (a, b, x))
    by: Any = torch.autograd.functional.jacobian(run, given)
    matrix, shift, inputs = (part.numpy().reshape(8, -1) for part in by)
    eye = np.eye(2)
    gaps = (
        inputs - np.kron(a, np.eye(4)),
        matrix - np.kron(eye, x.T),
        shift - np.kron(eye, np.ones((4, 1))),
    )
    turned = inputs - np.kron(np.eye(4), a)
    size = np.abs(inputs).max()
    return {
        "affine_gap": max(np.abs(gap).max() for gap in gaps) / size,
        "affine_gap_by_columns": np.abs(turned).max() / size,
    }


def _batch_norm(x: np.ndarray, eps: float) -> dict[str, float]:
    """Lemma B.2: v, m and their derivatives."""
    import torch

    count = x.shape[1]

    def v(y: Any) -> Any:
        return count**0.5 * y * (count * eps + y.square().sum(1, keepdim=True)) ** -0.5

    def whole(z: Any) -> Any:
        return torch.nn.functional.batch_norm(z.T, None, None, training=True, eps=eps).T

    centred = x - x.mean(1, keepdims=True)
    together = whole(torch.tensor(x)) - v(torch.tensor(centred))
    first, second = centred_norm_derivatives(centred, eps)
    away = np.eye(count) - 1 / count
    chained = first @ away
    by: Any = torch.autograd.functional.jacobian(whole, torch.tensor(x))
    gaps = _gaps(v, centred, first, second)
    return {
        "norm_split_gap": float(together.abs().max()),
        "norm_first_gap": gaps[0],
        "norm_second_gap": gaps[1],
        "norm_whole_gap": np.abs(_own_rows(by.numpy()) - chained).max(),
        "norm_without_mean": np.abs(_own_rows(by.numpy()) - first).max(),
    }


def _weight_norm(w: np.ndarray, eps: float) -> dict[str, float]:
    """Lemma B.3: equations 30 and 31."""

    def run(a: Any) -> Any:
        return a * (eps + a.square().sum(1, keepdim=True)) ** -0.5

    gaps = _gaps(run, w, *weight_norm_derivatives(w, eps))
    return {"weight_first_gap": gaps[0], "weight_second_gap": gaps[1]}


def _entry_norm(w: np.ndarray, eps: float) -> dict[str, float]:
    """Lemma B.3: equations 32 and 33, the latter as printed and corrected."""
    import torch

    def run(a: Any) -> Any:
        return a * (eps + a.square()) ** -0.5

    first, second = entry_norm_derivatives(w, eps)
    _, printed = entry_norm_derivatives(w, eps, printed=True)
    point = torch.tensor(w, requires_grad=True)
    (slope,) = torch.autograd.grad(run(point).sum(), point, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), point)
    found = curvature.numpy()
    # The printed Kronecker deltas keep only the entries whose row is their column.
    kept = np.eye(*SHAPE, dtype=bool)
    return {
        "entry_first_gap": np.abs(slope.detach().numpy() - first).max(),
        "entry_second_gap": np.abs(found - second).max(),
        "entry_printed_exponent": np.abs(found - printed)[kept].max(),
        "entry_printed_deltas": np.abs(found - second * kept).max(),
    }


def _gaps(
    run: Callable[[Any], Any], w: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[float, float]:
    """Compare first and second derivatives of each row by itself with autodiff."""
    import torch

    def slopes(a: Any) -> Any:
        return torch.autograd.functional.jacobian(run, a, create_graph=True)

    point = torch.tensor(w)
    by: Any = slopes(point).detach()
    twice: Any = torch.autograd.functional.jacobian(slopes, point)
    rows = np.arange(len(w))
    own = twice.numpy()[rows, :, rows][rows, :, :, rows]
    others = np.abs(by.numpy()).sum() - np.abs(_own_rows(by.numpy())).sum()
    return (
        float(np.abs(_own_rows(by.numpy()) - first).max() + abs(others)),
        float(np.abs(own - second).max()),
    )


def _own_rows(jacobian: np.ndarray) -> np.ndarray:
    rows = np.arange(len(jacobian))
    return jacobian[rows, :, rows]
