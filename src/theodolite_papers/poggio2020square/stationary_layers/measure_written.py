"""Networks that are written down, by autodiff, and the four numbers of collapse."""

import math

import numpy as np

from theodolite.core import Row, Rows, named_rows, stream

from .config import DIAGONAL_INPUT, DRAWS, INPUTS, Config, Instance, instances, unit

EPS = 1e-13


def written(config: Config) -> Rows:
    """Return gaps, gradients and inner products of every written-down network."""
    rows: list[Row] = []
    for trial in config.seeds:
        for name, instance in instances(config, trial).items():
            rows += [
                {**row, "network": name, "trial": trial, "error": EPS}
                for row in _layers(instance)
            ]
        rows += _random_matrices(config, trial) + _noise(config, trial)
    return Rows([*rows, *_diagonal_solutions()])


def _layers(instance: Instance) -> list[Row]:
    import torch

    layers = [torch.tensor(v, requires_grad=True) for v in instance.layers]
    x = torch.tensor(instance.x)
    for layer in layers[:-1]:
        x = (layer @ x).clamp(min=0) if instance.relu else layer @ x
    output = (layers[-1] @ x)[0]
    gradients = torch.autograd.grad(output, layers)
    f = output.item()
    rows: list[Row] = [{"quantity": "output", "value": f}]
    for place, (v, g) in enumerate(zip(layers, gradients, strict=True), start=1):
        gap = (v.detach() * f - g).norm().item()
        off = g - torch.diag(torch.diagonal(g)) if g.shape[0] == g.shape[1] else None
        numbers = {
            "gradient_norm": g.norm().item(),
            "structural_gap": abs((v.detach() * g).sum().item() - f),
            "constraint_gap": gap / abs(f) if f else math.inf,
        }
        if off is not None:
            numbers["off_diagonal"] = off.norm().item()
        rows += named_rows(numbers, EPS, layer=place)
    return rows


def _diagonal_solutions() -> list[Row]:
    """Return the gap of a diagonal network of 4 layers, by weights of two laws."""
    import torch

    x = torch.tensor(DIAGONAL_INPUT, dtype=torch.float64)
    laws = {
        "printed": unit(np.array(DIAGONAL_INPUT)),
        "corrected": unit(np.array(DIAGONAL_INPUT) ** -0.5),
    }
    rows: list[Row] = []
    for law, weights in laws.items():
        layers = [torch.tensor(weights, requires_grad=True) for _ in range(4)]
        output = (torch.stack(layers).prod(dim=0) * x).sum()
        slopes = torch.autograd.grad(output, layers)
        f = output.item()
        gap = max(
            (v.detach() * f - g).norm().item()
            for v, g in zip(layers, slopes, strict=True)
        )
        labels = {"law": law, "error": EPS}
        rows += [
            {"quantity": "diagonal_gap", "value": gap / f, **labels},
            {"quantity": "diagonal_output", "value": f, **labels},
        ]
    return rows


def _random_matrices(config: Config, trial: int) -> list[Row]:
    """Return how far Gaussian matrices are from orthogonal, in total and by column."""
    rng = stream(config.seed, "random matrix", trial)
    drawn = [rng.normal(size=(INPUTS, INPUTS)) for _ in range(DRAWS)]
    numbers = {
        "matrix_distance": np.mean([orthogonal_distance(m) ** 2 for m in drawn]),
        "column_cosine": np.mean([_column_cosine(m) ** 2 for m in drawn]),
    }
    labels = {"network": "normal", "trial": trial, "error": EPS}
    return [{"quantity": k, **labels, "value": float(v)} for k, v in numbers.items()]


def _noise(config: Config, trial: int) -> list[Row]:
    """Return the collapse of random features, independent of their classes."""
    rng = stream(config.seed, "noise features", trial)
    features, y = rng.normal(size=(40, INPUTS)), np.repeat([1.0, -1.0], 20)
    numbers = collapse(features, rng.normal(size=INPUTS), rng.normal(size=40), y)
    return [{**row, "stage": "noise", "trial": trial, "error": EPS} for row in numbers]


def orthogonal_distance(matrix: np.ndarray) -> float:
    r"""Return $\|p\,V^TV/\|V\|^2 - I\|/\sqrt p$ of a square matrix."""
    p = len(matrix)
    gram = p * matrix.T @ matrix / np.linalg.norm(matrix) ** 2
    return float(np.linalg.norm(gram - np.eye(p)) / math.sqrt(p))


def projection_gap(matrix: np.ndarray) -> float:
    """Return the sine of the angle between a matrix and its square.

    It is zero for multiples of projections, oblique ones included.
    """
    return math.sqrt(
        max(0.0, 1 - _cosine((matrix @ matrix).ravel(), matrix.ravel()) ** 2)
    )


def _column_cosine(matrix: np.ndarray) -> float:
    """Return the root mean square cosine of two columns."""
    columns = matrix / np.linalg.norm(matrix, axis=0)
    cosines = (columns.T @ columns)[np.triu_indices(len(matrix), 1)]
    return float(np.sqrt(np.mean(cosines**2)))


def collapse(
    features: np.ndarray, last: np.ndarray, outputs: np.ndarray, y: np.ndarray
) -> list[Row]:
    """Return NC1 to NC4 of the features of two equally large classes.

    Features of the last hidden layer have one row per sample; labels are -1 and +1.
    """
    means = [features[y == sign].mean(axis=0) for sign in (1, -1)]
    within = np.concatenate(
        [features[y == s] - m for s, m in zip((1, -1), means, strict=True)]
    )
    half = (means[0] - means[1]) / 2
    length = np.linalg.norm(half)
    # tr(S_W S_B^+)/2 with S_B = half half^T, of rank one.
    within_share = float(np.mean((within @ half) ** 2) / (2 * length**4))
    centre = (means[0] + means[1]) / 2
    away = [np.linalg.norm(features - mean, axis=1) for mean in means]
    nearest = np.where(away[0] < away[1], 1.0, -1.0)
    numbers = {
        "within_share": within_share,
        "raw_cosine": _cosine(means[0], means[1]),
        "centred_cosine": _cosine(means[0] - centre, means[1] - centre),
        "dual_cosine": _cosine(last, half),
        "dual_gap": float(np.sum((unit(last) - unit(half)) ** 2)),
        "nearest_agreement": float(np.mean(nearest == np.sign(outputs))),
    }
    return [{"quantity": k, "value": v} for k, v in numbers.items()]


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
