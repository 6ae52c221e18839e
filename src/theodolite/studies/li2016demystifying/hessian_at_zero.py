"""Theorem 2: the Hessian of an n-shortcut network at zero weights.

Li et al. (2016), Demystifying ResNet, theorem 2, Eqs 8–10 and 21–32, figure 11. The
claim in our words: for n = 2 the Hessian at zero is one small matrix repeated, so its
condition number does not see depth; for n = 1 it is block Toeplitz; for n ≥ 3 it
vanishes.

Departures: random data in place of a dataset (the theorem is for any), the loss of
Eq 23, and networks small enough for dense Hessians. Cost: seconds at QUICK.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import Blueprint, ConfigError, Row, Rows, condition_of, stream
from theodolite.studies.li2016demystifying import (
    hessian_at_zero_claims,
    hessian_at_zero_figure,
)
from theodolite.studies.li2016demystifying.measuring import (
    EPS,
    SETTINGS,
    at_zero,
    gap,
    measured_hessian,
    named,
    random_data,
)
from theodolite.studies.study import Drawing, Study, StudyConfig
from theodolite.theory import (
    commutation,
    conditioning_at_zero,
    data_matrix,
    eigenvalues_at_zero,
    hessian_at_zero,
    moments,
)

LENGTHS = (1, 2, 3, 4)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width, at several numbers of units."""

    width: int = 4
    samples: int = 24
    units: tuple[int, ...] = (1, 2, 4)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.units) < 2:
            raise ConfigError(
                f"units {self.units}: depth invariance wants at least two numbers"
            )


SMOKE = Config(n_seeds=1, units=(1, 2))
QUICK = Config(n_seeds=5)
PAPER = Config(n_seeds=20, units=(1, 2, 4, 8))


def dataset(config: Config, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the random inputs and targets of a trial."""
    return random_data(trial, samples=config.samples, width=config.width)


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a shortcut length and dataset, and one for the picture."""
    found = [{"n": n, "trial": seed} for n in LENGTHS for seed in config.seeds]
    return [*found, {"n": 0, "trial": config.seed}]


def predict(config: Config) -> Rows:
    """Eq 9 and Eq 26 for every dataset, and the picture's closed form."""
    rows: list[Row] = []
    for trial in config.seeds:
        x, y = dataset(config, trial)
        for setting, names in SETTINGS.items():
            plan = Blueprint(width=config.width, depth=2, **names)
            found = conditioning_at_zero(plan, x, y, quantile=0.0)
            rows += named(
                {"condition": found.ratio, "largest": found.largest},
                EPS * config.width * found.ratio**2,
                n=2,
                setting=setting,
                trial=trial,
            )
    x, y = picture_data(config)
    for n in (1, 2, 3):
        plan = Blueprint(width=2, depth=3 * n, shortcut=n)
        rows += _entries(hessian_at_zero(plan, x, y), n, EPS)
    return Rows(rows)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure all settings and depths of one shortcut length on one dataset."""
    if cell["n"] == 0:
        return Rows(_picture(config))
    x, y = dataset(config, cell["trial"])
    return Rows(
        row
        for setting, names in SETTINGS.items()
        for units in config.units
        for row in _matrix(config, cell["n"], setting, names, units, x, y)
    )


def _matrix(
    config: Config,
    n: int,
    setting: str,
    names: Mapping[str, Any],
    units: int,
    x: np.ndarray,
    y: np.ndarray,
) -> list[Row]:
    """Compare one measured Hessian with the closed form and its rivals."""
    plan = Blueprint(width=config.width, depth=n * units, shortcut=n, **names)
    matrix, reading = measured_hessian(at_zero(plan, config.device), x, y)
    scale = max(float(np.abs(matrix).max()), np.finfo(float).tiny)
    values = np.linalg.eigvalsh(matrix)
    found: dict[str, float] = {
        "closed_form": gap(hessian_at_zero(plan, x, y), matrix, scale)
    }
    if n == 2:
        found |= _two_shortcut(plan, matrix, values, x, y, scale)
    if n == 1:
        found |= _one_shortcut(plan, matrix, x, y, scale)
    # Fractions of the largest entry are good to the rounding of sums over the matrix
    # and the asymmetry found; what has the loss's own units, to that times its size.
    relative = EPS * len(matrix) + reading.asymmetry
    labels = {"n": n, "setting": setting, "units": units}
    rows = named(found, relative, **labels)
    sized = {
        "max_entry": np.abs(matrix).max(),
        "largest": np.abs(values).max(),
        "lowest": values.min(),
        "gradient_norm": np.linalg.norm(reading.gradient),
    }
    size = max(float(np.abs(values).max()), scale)
    rows += named(sized, relative * size, **labels)
    if n == 2:
        condition = condition_of(values, quantile=0.0)
        rows += named({"condition": condition.ratio}, condition.error, **labels)
    return rows


def _two_shortcut(
    plan: Blueprint,
    matrix: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    scale: float,
) -> dict[str, float]:
    blocks = _blocks(matrix, plan.width**2)
    lower = [blocks[2 * r + 1, 2 * r].copy() for r in range(plan.units)]
    for r in range(plan.units):
        blocks[2 * r + 1, 2 * r] = blocks[2 * r, 2 * r + 1] = 0
    data, eye = data_matrix(plan, x, y), np.eye(plan.width)
    k, copies = commutation(plan.width), plan.width * plan.units
    # A rival for the spectrum: magnitudes of eigenvalues of M for singular values.
    other = np.repeat(np.abs(np.linalg.eigvals(data)), copies)
    return {
        "off_pattern": float(np.abs(blocks).max()) / scale,
        "unit_spread": max(gap(lower[0], block, scale) for block in lower),
        "entries": gap(np.kron(eye, data) @ k, lower[0], scale),
        "entries_without_commutation": gap(np.kron(eye, data), lower[0], scale),
        "entries_transposed": gap(np.kron(eye, data.T) @ k, lower[0], scale),
        "spectrum": gap(eigenvalues_at_zero(plan, x, y), values, scale),
        "spectrum_of_eigenvalues": gap(
            np.sort(np.concatenate([-other, other])), values, scale
        ),
        "index": float(np.mean(values < 0)),
    }


def _one_shortcut(
    plan: Blueprint, matrix: np.ndarray, x: np.ndarray, y: np.ndarray, scale: float
) -> dict[str, float]:
    d, units = plan.width, plan.units
    blocks = _blocks(matrix, d * d)
    kinds: dict[str, list[np.ndarray]] = {"diagonal": [], "lower": [], "upper": []}
    for r in range(units):
        for s in range(units):
            kind = "diagonal" if r == s else "lower" if r > s else "upper"
            kinds[kind].append(blocks[r, s])
    spread = max(
        gap(group[0], block, scale) for group in kinds.values() for block in group
    )
    printed_b = np.kron(moments(x, y).xx, np.eye(d))
    found = {
        "block_spread": spread,
        "printed_diagonal": gap(printed_b, kinds["diagonal"][0], scale),
    }
    if units > 1:
        pull = np.kron(np.eye(d), moments(x, y).gap)
        lower = kinds["lower"][0]
        found |= {
            "transposed_above": gap(lower.T, kinds["upper"][0], scale),
            "coupling": float(np.abs(lower).max()) / scale,
            "printed_lower": gap(printed_b + pull @ commutation(d), lower, scale),
            "lower_without_commutation": gap(printed_b + pull, lower, scale),
        }
    return found


def picture_data(config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Return data of width 2, small enough to show every entry."""
    x, y = stream(config.seed, "picture").normal(size=(2, 12, 2))
    return x, y


def _picture(config: Config) -> list[Row]:
    x, y = picture_data(config)
    rows: list[Row] = []
    for n in (1, 2, 3):
        plan = Blueprint(width=2, depth=3 * n, shortcut=n)
        matrix, reading = measured_hessian(at_zero(plan, config.device), x, y)
        # A row's own n tells the pictures apart; the cell's is 0 for all.
        rows += _entries(matrix, n, max(reading.matrix_error, EPS))
    return rows


def _blocks(matrix: np.ndarray, size: int) -> np.ndarray:
    """Return a copy of a matrix as a square array of square blocks."""
    n = len(matrix) // size
    return matrix.reshape(n, size, n, size).transpose(0, 2, 1, 3).copy()


def _entries(matrix: np.ndarray, n: int, error: float) -> list[Row]:
    return [
        {
            "quantity": "entry",
            "shortcut": n,
            "row": i,
            "column": j,
            "value": float(value),
            "error": error,
        }
        for (i, j), value in np.ndenumerate(matrix)
    ]


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Condition number of Eq 9 beside the measured one, deepest network."""
    rows: list[Row] = []
    deepest = max(measured.levels("units"))
    for setting in SETTINGS:
        for trial in predicted.where(quantity="condition").levels("trial")[:3]:
            labels = {"n": 2, "setting": setting, "trial": trial}
            found = measured.only(quantity="condition", units=deepest, **labels)
            rows.append(
                {
                    "label": f"cond(H), n = 2, {setting}, {deepest} units, "
                    f"dataset {trial}",
                    "predicted": predicted.value(quantity="condition", **labels),
                    "measured": found["value"],
                    "error": found["error"],
                }
            )
    return rows


STUDY = Study(
    title="The Hessian at zero: structure and condition for n = 1, 2, 3 and up",
    summary=(
        "Where all weights of an $n$-shortcut network are zero it is the identity "
        "map. For $n=2$ its Hessian is one $d^2 \\times d^2$ block $A$ and its "
        "transpose, repeated in every unit, with eigenvalues $\\pm$ the singular "
        "values of $M=\\Sigma^{XX}-\\Sigma^{YX}$, whatever the depth; for $n=1$ all "
        "units couple; for $n \\geq 3$ the Hessian vanishes. Each closed form is "
        "compared with the Hessian of a real network, measured by double backward."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=hessian_at_zero_claims.CLAIMS,
    drawings=(
        Drawing(
            "hessian",
            "Entries of the Hessian at zero for three units of width 2, closed form "
            "above and measured below: shortcuts of length 1, 2 and 3. Lines separate "
            "weight matrices.",
            hessian_at_zero_figure.draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets, since the theorem is for any data.",
        "Double precision and small widths, so that every entry can be compared.",
    ),
)
