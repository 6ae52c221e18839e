"""Theorem 2: the Hessian of an n-shortcut network at zero weights.

Li et al. (2016), Demystifying ResNet, theorem 2, Eqs 8–10 and 21–32, assumption 3,
figure 11. The claim in our words: at zero, a network with shortcuts of length n has
no derivative below order n; for n = 2 its Hessian is the same small matrix repeated,
so its condition number does not see depth; for n = 1 it is block Toeplitz.

Departures: random data in place of a dataset (the theorem is for any), the loss of
Eq 23, and networks small enough for dense Hessians. Cost: seconds at QUICK.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Blueprint, ConfigError, Row, Rows, condition_of, stream
from theodolite.studies.li2016demystifying import (
    hessian_at_zero_claims,
    hessian_at_zero_figure,
)
from theodolite.studies.study import Drawing, Study, StudyConfig
from theodolite.theory import (
    column_major,
    commutation,
    conditioning_at_zero,
    data_matrix,
    eigenvalues_at_zero,
    hessian_at_zero,
    moments,
    relu_spectrum_near_zero,
)

# Activations by name of the setting; "general" has neither oddness nor unit slopes,
# and a pre-activation that is not 0 at 0, which assumption 3 allows.
SETTINGS: dict[str, dict[str, Any]] = {
    "linear": {},
    "tanh": {"pre": "tanh", "mid": "tanh", "post": "tanh"},
    "general": {"pre": "exp", "mid": "polynomial:1.5,1", "post": "polynomial:2,1"},
}
ORDERS = (2, 3, 4, 5)
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width, at several numbers of units."""

    width: int = 4
    samples: int = 24
    units: tuple[int, ...] = (1, 2, 4)
    relu_scale: float = 1e-6
    contact_step: float = 0.02

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
    rng = stream(trial, "hessian_at_zero")
    x, y = rng.normal(size=(2, config.samples, config.width))
    return x, y


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a task and trial, and one for the picture."""
    tasks = ["matrix_1", "matrix_2", "matrix_3", "matrix_4", "contact", "bias", "relu"]
    found = [{"task": task, "trial": seed} for task in tasks for seed in config.seeds]
    return [*found, {"task": "picture", "trial": config.seed}]


def predict(config: Config) -> Rows:
    """Eq 9 and Eq 26 for every dataset, and the picture's closed form."""
    rows: list[Row] = []
    for trial in config.seeds:
        x, y = dataset(config, trial)
        for setting, names in SETTINGS.items():
            plan = Blueprint(width=config.width, depth=2, **names)
            found = conditioning_at_zero(plan, x, y, quantile=0.0)
            rows += _named(
                {"condition": found.ratio, "largest": found.largest},
                error=EPS * found.ratio,
                n=2,
                setting=setting,
                trial=trial,
            )
    x, y = picture_data(config)
    for n in (1, 2, 3):
        plan = Blueprint(width=2, depth=3 * n, shortcut=n)
        rows += _entries(hessian_at_zero(plan, x, y), n)
    return Rows(rows)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one task on one dataset."""
    task, trial = cell["task"], cell["trial"]
    if task == "picture":
        return Rows(_picture(config))
    x, y = dataset(config, trial)
    if task == "contact":
        return Rows(_contact(config, trial, x, y))
    if task == "bias":
        return Rows(_bias(config, x, y))
    if task == "relu":
        return Rows(_relu(config, trial, x, y))
    n = int(task.removeprefix("matrix_"))
    return Rows(
        row
        for setting, names in SETTINGS.items()
        for units in config.units
        for row in _matrix(config, n, setting, names, units, x, y)
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
    matrix, reading = measured_hessian(networks.build(zeroed(plan), seed=0), x, y)
    scale = max(float(np.abs(matrix).max()), np.finfo(float).tiny)
    values = np.linalg.eigvalsh(matrix)
    found = {
        "max_entry": np.abs(matrix).max(),
        "asymmetry": reading.asymmetry,
        "gradient_norm": np.linalg.norm(reading.gradient),
        "lowest": values.min(),
        "closed_form": _gap(hessian_at_zero(plan, x, y), matrix, scale),
    }
    if n == 2:
        found |= _two_shortcut(plan, matrix, values, x, y, scale)
    if n == 1:
        found |= _one_shortcut(plan, matrix, x, y, scale)
    # Rounding of sums over the matrix, and what the instrument found asymmetric.
    error = EPS * len(matrix) + reading.asymmetry
    return _named(found, error=error, n=n, setting=setting, units=units)


def _two_shortcut(
    plan: Blueprint,
    matrix: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    scale: float,
) -> dict[str, float]:
    d2 = plan.width**2
    blocks = _blocks(matrix, d2)
    lower = [blocks[2 * r + 1, 2 * r].copy() for r in range(plan.units)]
    for r in range(plan.units):
        blocks[2 * r + 1, 2 * r] = blocks[2 * r, 2 * r + 1] = 0
    data, eye = data_matrix(plan, x, y), np.eye(plan.width)
    k = commutation(plan.width)
    condition = condition_of(values, quantile=0.0)
    return {
        "off_pattern": float(np.abs(blocks).max()) / scale,
        "unit_spread": max(_gap(lower[0], block, scale) for block in lower),
        "entries": _gap(np.kron(eye, data) @ k, lower[0], scale),
        "entries_without_commutation": _gap(np.kron(eye, data), lower[0], scale),
        "entries_transposed": _gap(np.kron(eye, data.T) @ k, lower[0], scale),
        "spectrum": _gap(eigenvalues_at_zero(plan, x, y), values, scale),
        "condition": condition.ratio,
        "condition_error": condition.error,
        "index": float(np.mean(values < 0)),
    }


def _one_shortcut(
    plan: Blueprint, matrix: np.ndarray, x: np.ndarray, y: np.ndarray, scale: float
) -> dict[str, float]:
    d, units = plan.width, plan.units
    blocks = _blocks(matrix, d * d)
    kinds = {"diagonal": [], "lower": [], "upper": []}
    for r in range(units):
        for s in range(units):
            kind = "diagonal" if r == s else "lower" if r > s else "upper"
            kinds[kind].append(blocks[r, s])
    spread = max(
        (_gap(group[0], block, scale) for group in kinds.values() for block in group),
        default=0.0,
    )
    printed_b = np.kron(moments(x, y).xx, np.eye(d))
    found = {
        "block_spread": spread,
        "printed_diagonal": _gap(printed_b, kinds["diagonal"][0], scale),
    }
    if units > 1:
        gap = np.kron(np.eye(d), moments(x, y).gap) @ commutation(d)
        found |= {
            "transposed_above": _gap(kinds["lower"][0].T, kinds["upper"][0], scale),
            "coupling": float(np.abs(kinds["lower"][0]).max()) / scale,
            "printed_lower": _gap(printed_b + gap, kinds["lower"][0], scale),
        }
    return found


def _contact(config: Config, trial: int, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """Order of contact along a random direction, and along its mirror image."""
    rows: list[Row] = []
    for n in ORDERS:
        for setting in ("linear", "tanh"):
            plan = Blueprint(
                width=config.width, depth=2 * n, shortcut=n, **SETTINGS[setting]
            )
            way = networks.draw_weights(plan.with_(init="xavier"), seed=trial)
            mirror = way.copy()
            mirror[n - 1 :: n] *= -1
            start = _loss(plan, 0 * way, x, y)
            t = config.contact_step
            change = [_loss(plan, s * way, x, y) - start for s in (t / 2, t, 2 * t)]
            orders = [np.log2(abs(b / a)) for a, b in pairwise(change)]
            mirrored = _loss(plan, t * mirror, x, y) - start
            labels = {"n": n, "setting": setting}
            found = {"rise": change[1] / t**n, "mirror": mirrored / t**n}
            rows += _named(found, error=EPS * start / t**n, **labels)
            # The step from t/2 to t is the estimate, its change from t to 2t the error.
            rows.append(
                {
                    "quantity": "order",
                    **labels,
                    "value": float(orders[0]),
                    "error": float(abs(orders[0] - orders[1])),
                }
            )
    return rows


def _bias(config: Config, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """Eq 3's unit with biases: how many flat directions, and what the rest is."""
    rows: list[Row] = []
    for units in config.units:
        plan = Blueprint(width=config.width, depth=2 * units, mid="tanh", bias=True)
        matrix, _ = measured_hessian(networks.build(zeroed(plan), seed=0), x, y)
        values = np.linalg.eigvalsh(matrix)
        size = np.sort(np.abs(values))
        flat = int((size < 1e-10 * size[-1]).sum())
        without = eigenvalues_at_zero(plan.with_(bias=False), x, y)
        found = {
            "flat": flat,
            "flat_expected": config.width * units,
            "closed_form": _gap(hessian_at_zero(plan, x, y), matrix, size[-1]),
            "largest": size[-1],
            "smallest_nonzero": size[flat],
            "largest_of_theorem": np.abs(without).max(),
            "smallest_of_theorem": np.abs(without).min(),
        }
        rows += _named(found, error=EPS * len(matrix), units=units)
    return rows


def _relu(config: Config, trial: int, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """ReLU at mid: at exactly zero, and at small weights."""
    rows: list[Row] = []
    for units in config.units:
        plan = Blueprint(width=config.width, depth=2 * units, mid="relu")
        at_zero, _ = measured_hessian(networks.build(zeroed(plan), seed=0), x, y)
        small = plan.with_(init="small", init_scale=config.relu_scale)
        network = networks.build(small, seed=trial)
        matrix, _ = measured_hessian(network, x, y)
        values = np.linalg.eigvalsh(matrix)
        masked = relu_spectrum_near_zero(networks.get_weights(network)[::2], x, y)
        smooth = eigenvalues_at_zero(plan, x, y)
        scale = float(np.abs(values).max())
        found = {
            "max_entry_at_zero": np.abs(at_zero).max(),
            "condition": condition_of(values, quantile=0.0).ratio,
            "condition_printed": condition_of(smooth, quantile=0.0).ratio,
            "largest": scale,
            "largest_printed": np.abs(smooth).max(),
            "printed": _gap(smooth, values, scale),
            "half_space": _gap(masked, values, scale),
        }
        rows += _named(found, error=EPS * len(matrix), units=units)
    return rows


def picture_data(config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Return data of width 2, small enough to show every entry."""
    rng = stream(config.seed, "picture")
    x, y = rng.normal(size=(2, 12, 2))
    return x, y


def _picture(config: Config) -> list[Row]:
    x, y = picture_data(config)
    rows: list[Row] = []
    for n in (1, 2, 3):
        plan = zeroed(Blueprint(width=2, depth=3 * n, shortcut=n))
        rows += _entries(measured_hessian(networks.build(plan, seed=0), x, y)[0], n)
    return rows


def measured_hessian(
    network: Any, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, Any]:
    """Measure a Hessian by double backward, in the paper's order of parameters."""
    import torch

    batch = (torch.as_tensor(x), torch.as_tensor(y))
    reading = instruments.hessian(
        network, batch, loss=instruments.HalfSquareLoss(), norm_mode="eval"
    )
    order = column_major([shape for _, shape in reading.layout])
    return reading.matrix[np.ix_(order, order)], reading


def zeroed(plan: Blueprint) -> Blueprint:
    """Return the same network at zero weights."""
    return plan.with_(init="zero")


def _loss(plan: Blueprint, weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    import torch

    network = networks.build(zeroed(plan), seed=0)
    networks.set_weights(network, weights)
    with torch.no_grad():
        outputs = network(torch.as_tensor(x))
        return float(instruments.HalfSquareLoss()(outputs, torch.as_tensor(y)))


def _blocks(matrix: np.ndarray, size: int) -> np.ndarray:
    """Return a copy of a matrix as a square array of square blocks."""
    n = len(matrix) // size
    return matrix.reshape(n, size, n, size).transpose(0, 2, 1, 3).copy()


def _gap(theory: np.ndarray, measured: np.ndarray, scale: float) -> float:
    return float(np.abs(theory - measured).max()) / scale


def _named(found: Mapping[str, Any], *, error: float, **labels: Any) -> list[Row]:
    return [
        {"quantity": name, **labels, "value": float(value), "error": error}
        for name, value in found.items()
    ]


def _entries(matrix: np.ndarray, n: int) -> list[Row]:
    return [
        {"quantity": "entry", "n": n, "row": i, "column": j, "value": float(value)}
        for (i, j), value in np.ndenumerate(matrix)
    ]


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Condition number of Eq 9 beside the measured one, deepest network."""
    rows: list[Row] = []
    deepest = max(measured.levels("units"))
    for setting in SETTINGS:
        for trial in predicted.where(quantity="condition").levels("trial")[:3]:
            labels = {"n": 2, "setting": setting, "trial": trial}
            rows.append(
                {
                    "label": f"cond(H), n = 2, {setting}, {deepest} units, "
                    f"dataset {trial}",
                    "predicted": predicted.value(quantity="condition", **labels),
                    "measured": measured.value(
                        quantity="condition", units=deepest, **labels
                    ),
                    "error": measured.value(
                        quantity="condition_error", units=deepest, **labels
                    ),
                }
            )
    return rows


STUDY = Study(
    title="The Hessian at zero: order, structure and condition for n = 1, 2, 3 and up",
    summary=(
        "Where all weights of an $n$-shortcut network are zero it is the identity "
        "map, and the loss moves only when all $n$ matrices of some unit move. So "
        "zero is a stationary point of order $n-1$: for $n=2$ the Hessian is one "
        "$d^2 \\times d^2$ block $A$ and its transpose, repeated in every unit, and "
        "its eigenvalues are $\\pm$ the singular values of "
        "$M=\\Sigma^{XX}-\\Sigma^{YX}$, whatever the depth; for $n=1$ all units "
        "couple; for $n \\geq 3$ the Hessian vanishes. Each closed form is compared "
        "with the Hessian of a real network, measured by double backward."
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
