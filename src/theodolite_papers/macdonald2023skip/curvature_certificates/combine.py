"""Closed forms and certified bounds at the weights of real networks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from theodolite import theory
from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    Cell,
    Row,
    Rows,
    SystemBlueprint,
    named_rows,
    stream,
)

from .combine_systems import ascents, looseness, systems
from .config import SCALES, Config, Instance, instance
from .measure import network_of

TINY, LEMMA_TINY = 1e-10, 1e-13
SHAPE = (2, 3)  # of weights; of the rows of a batch, features and samples


def lemmas(config: Config) -> list[Row]:
    """Return distances of formulas from autodiff."""
    rows: list[Row] = []
    for trial in config.seeds:
        rng = stream(config.seed, "lemmas", trial)
        w, eps = rng.normal(size=SHAPE), float(10 ** rng.uniform(-1, 1))
        numbers = _affine(rng) | _batch_norm(w, eps) | _weight_norm(w, eps)
        rows += named_rows(numbers | _entry_norm(w, eps), LEMMA_TINY, trial=trial)
    return rows


def _affine(rng: np.random.Generator) -> dict[str, float]:
    """Return gaps of equations 17, 18, 20 and 21, rows first and columns first."""
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
    """Return gaps of lemma B.2: v, m and their derivatives."""
    import torch

    count = x.shape[1]

    def v(y: Any) -> Any:
        return count**0.5 * y * (count * eps + y.square().sum(1, keepdim=True)) ** -0.5

    def whole(z: Any) -> Any:
        return torch.nn.functional.batch_norm(z.T, None, None, training=True, eps=eps).T

    centred = x - x.mean(1, keepdims=True)
    together = whole(torch.tensor(x)) - v(torch.tensor(centred))
    first, second = theory.centred_norm_derivatives(centred, eps)
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
    """Return gaps of lemma B.3, equations 30 and 31."""

    def run(a: Any) -> Any:
        return a * (eps + a.square().sum(1, keepdim=True)) ** -0.5

    gaps = _gaps(run, w, *theory.weight_norm_derivatives(w, eps))
    return {"weight_first_gap": gaps[0], "weight_second_gap": gaps[1]}


def _entry_norm(w: np.ndarray, eps: float) -> dict[str, float]:
    """Return gaps of lemma B.3, equations 32 and 33, printed and corrected."""
    import torch

    def run(a: Any) -> Any:
        return a * (eps + a.square()) ** -0.5

    first, second = theory.entry_norm_derivatives(w, eps)
    _, printed = theory.entry_norm_derivatives(w, eps, printed=True)
    point = torch.tensor(w, requires_grad=True)
    (slope,) = torch.autograd.grad(run(point).sum(), point, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), point)
    curved = curvature.numpy()
    # The printed Kronecker deltas keep only the entries whose row is their column.
    kept = np.eye(*SHAPE, dtype=bool)
    return {
        "entry_first_gap": np.abs(slope.detach().numpy() - first).max(),
        "entry_second_gap": np.abs(curved - second).max(),
        "entry_printed_exponent": np.abs(curved - printed)[kept].max(),
        "entry_printed_deltas": np.abs(curved - second * kept).max(),
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


def kernels(config: Config) -> list[Row]:
    """Return certified numbers of residual networks, and of their rivals."""
    rows: list[Row] = []
    for trial in config.seeds:
        drawn = instance(config, trial)
        rows += _bounds(drawn, trial)
        rows += _grown(drawn, trial)
        rows += _rivals(config, drawn, trial)
    return rows


def _certify(network: Any, inputs: np.ndarray, cost: str, targets: Any) -> Any:
    import torch

    from theodolite.certificates import certificate

    return certificate(network, (torch.tensor(inputs), targets), cost)


def _bounds(drawn: Instance, trial: int) -> list[Row]:
    """Return the bound over the kernel, and theorem 2.4's gradient ratio."""
    network = network_of(drawn, trial)
    outputs = drawn.plan.shapes[-1][0]
    targets = {
        "cross_entropy": drawn.classes,
        "square": stream(trial, "targets").normal(size=(len(drawn.inputs), outputs)),
    }
    rows: list[Row] = []
    for cost, given in targets.items():
        certified = _certify(network, drawn.inputs, cost, given)
        least = certified.kernel_smallest
        share = certified.kernel_error / least
        bound = certified.polyak * least
        ratio = named_rows(
            {"gradient_ratio": certified.ratio / bound},
            (certified.ratio_error / bound) + share * certified.ratio / bound,
            trial=trial,
            cost=cost,
        )
        met = certified.applies("4.7") and certified.applies("4.5")
        rows += [
            *ratio,
            *named_rows({"conditions_met": met}, 0.0, trial=trial, cost=cost),
        ]
        size = certified.kernel_bound / least
        error = (share + TINY) * size
        rows += named_rows({"kernel_ratio": size}, error, trial=trial, cost=cost)
    return rows


def _grown(drawn: Instance, trial: int) -> list[Row]:
    """Return the first layer's term as all weights grow."""
    rows: list[Row] = []
    for scale in SCALES:
        network = network_of(replace(drawn, scale=1.0), trial, scale)
        certified = _certify(network, drawn.inputs, "cross_entropy", drawn.classes)
        labels = {"trial": trial, "scale": scale}
        first, own = float(certified.terms[0]), float(certified.own[0])
        # Singular values are right to rounding of the largest.
        top = np.linalg.norm(drawn.inputs, 2) / np.sqrt(drawn.eps)
        error = first * (TINY + 1e-14 * top / np.sqrt(own))
        rows += named_rows({"first_term": first}, error, **labels)
        least = certified.kernel_smallest
        rows += named_rows(
            {"least_eigenvalue": least}, certified.kernel_error, **labels
        )
    return rows


def _rivals(config: Config, drawn: Instance, trial: int) -> list[Row]:
    """Return kernels of equal samples, of few parameters, and before a batch norm."""
    rng = stream(config.seed, "rivals", trial)
    twice = np.concatenate([drawn.inputs[:1], drawn.inputs[:1]])
    same = _certify(network_of(drawn, trial), twice, "cross_entropy", [0, 0])
    few = replace(drawn, plan=_plan(2, AffineLayer(into=2, out=3)))
    small = _certify(
        network_of(few, trial), rng.normal(size=(4, 2)), "cross_entropy", [0, 1, 2, 0]
    )
    first, last = AffineLayer(into=6, out=4), AffineLayer(into=4, out=2)
    x = rng.normal(size=(3, 6))
    normed, bare = (
        _certify(
            network_of(replace(drawn, plan=_plan(6, first, *norm, last)), trial),
            x,
            "cross_entropy",
            [0, 1, 0],
        )
        for norm in ((BatchNormLayer(features=4, eps=1.0),), ())
    )
    numbers = {
        "dependent_over_rounding": abs(same.kernel_smallest) / same.kernel_error,
        "overfull_over_rounding": abs(small.kernel_smallest) / small.kernel_error,
        "term_before_norm": normed.terms[0],
        "term_without_norm": bare.terms[0],
    }
    return named_rows(numbers, 0.0, trial=trial)


def _plan(inputs: int, *layers: Any) -> SystemBlueprint:
    return SystemBlueprint(inputs=inputs, layers=layers)


_PARTS = {
    "lemmas": lemmas,
    "systems": systems,
    "ascents": ascents,
    "kernels": kernels,
    "looseness": looseness,
}


def combine(config: Config, cell: Cell) -> Rows:
    """Measure one part against theory."""
    part = _PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))
