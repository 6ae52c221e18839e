"""Is a shortcut of length 1 the same as no shortcut? Where yes, and where no.

Li et al. (2016), Demystifying ResNet, abstract and section 5: shortcuts of length 1
are "essentially equivalent" to none, and train like orthogonal initialisation. In our
words: a linear 1-shortcut network is a plain one at the identity; with orthogonal
weights and labels turned by the network's own map the plain network has the same
Hessian up to a rotation and the same training, step for step. With Xavier weights or
with nonlinearities that ends. Figure 4 has the condition numbers on digits.

Departures: random data. Cost: seconds at QUICK, minutes at PAPER.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Blueprint, ConfigError, Row, Rows, condition_of
from theodolite.studies.li2016demystifying import (
    equivalence_claims,
    equivalence_figure,
)
from theodolite.studies.li2016demystifying.measuring import (
    EPS,
    at_zero,
    gap,
    measured_hessian,
    named,
    random_data,
)
from theodolite.studies.study import Drawing, Study, StudyConfig
from theodolite.theory import conditioning_at_zero, linear_hessian, moments

# Where a single matrix can have an activation: before or after it.
NONLINEAR: dict[str, dict[str, str]] = {
    "tanh after": {"post": "tanh"},
    "tanh before": {"pre": "tanh"},
    "relu before": {"pre": "relu"},
}


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width.

    Attributes:
        depths: Matrices of the networks whose Hessians are compared.
        plain_depths: Matrices of the Xavier networks, from moments.
        trained: Depth at which networks are trained.
        steps: Steps of gradient descent.
        rate: Its learning rate.
    """

    width: int = 4
    samples: int = 24
    depths: tuple[int, ...] = (2, 4, 8)
    plain_depths: tuple[int, ...] = (2, 4, 8, 16)
    trained: int = 6
    steps: int = 200
    rate: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.plain_depths) < 3:
            raise ConfigError(
                f"plain_depths {self.plain_depths}: growth wants at least three"
            )


SMOKE = Config(n_seeds=2, depths=(2, 4), plain_depths=(2, 4, 8, 16), steps=60)
QUICK = Config(n_seeds=5)
PAPER = Config(n_seeds=20, depths=(2, 4, 8, 12), plain_depths=(2, 4, 8, 12, 16))


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a task and network."""
    tasks = ("identity", "rotation", "training", "xavier")
    return [{"task": task, "trial": seed} for task in tasks for seed in config.seeds]


def dataset(config: Config, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the random inputs and targets of a trial."""
    return random_data(trial, samples=config.samples, width=config.width)


def predict(config: Config) -> Rows:
    """Condition numbers of 1-shortcut networks at zero, from the closed form."""
    rows: list[Row] = []
    for trial in config.seeds:
        x, y = dataset(config, trial)
        for depth in config.plain_depths:
            plan = Blueprint(width=config.width, depth=depth, shortcut=1)
            found = conditioning_at_zero(plan, x, y)
            rows += named({"ratio": found.ratio}, 1e-10, trial=trial, depth=depth)
    return Rows(rows)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Run one task on one dataset."""
    task = {
        "identity": _identity,
        "rotation": _rotation,
        "training": _training,
        "xavier": _xavier,
    }
    return Rows(task[cell["task"]](config, cell["trial"]))


def _pair(config: Config, depth: int, **names: Any) -> tuple[Blueprint, Blueprint]:
    """Return a 1-shortcut network and the plain one with the same layers."""
    shortcut = Blueprint(width=config.width, depth=depth, shortcut=1, **names)
    return shortcut, shortcut.with_(skip=False, init="orthogonal")


def _identity(config: Config, trial: int) -> list[Row]:
    """A 1-shortcut network at W, and a plain one at I + W."""
    rows: list[Row] = []
    x, y = dataset(config, trial)
    for depth in config.depths:
        for setting, names in {"linear": {}, **NONLINEAR}.items():
            shortcut, plain = _pair(config, depth, **names)
            weights = 0.1 * networks.draw_weights(
                shortcut.with_(init="xavier"), seed=trial
            )
            found = []
            for plan, shift in ((shortcut, 0.0), (plain, np.eye(config.width))):
                network = at_zero(plan, config.device)
                networks.set_weights(network, weights + shift)
                found.append(measured_hessian(network, x, y)[0])
            scale = float(np.abs(found[0]).max())
            row = {"identity_gap": gap(found[1], found[0], scale)}
            rows += named(row, EPS * len(found[0]), depth=depth, setting=setting)
    return rows


def _rotation(config: Config, trial: int) -> list[Row]:
    r"""A plain orthogonal network, and a 1-shortcut one at zero with turned labels.

    With $Q_r = O_r \cdots O_1$ and $W_r = Q_r(I + V_r)Q_{r-1}^T$ the plain map is
    $Q_R\prod(I + V_r)$, so $\mathrm{vec}\,W_r$ turns with $Q_{r-1} \otimes Q_r$.
    """
    rows: list[Row] = []
    x, y = dataset(config, trial)
    for depth in config.depths:
        for setting, names in {"linear": {}, **NONLINEAR}.items():
            shortcut, plain = _pair(config, depth, **names)
            network = networks.build(plain, seed=trial, device=config.device)
            turns = _partial_products(networks.get_weights(network))
            matrix, _ = measured_hessian(network, x, y)
            zero = at_zero(shortcut, config.device)
            twin, _ = measured_hessian(zero, x, y @ turns[-1])
            straight, _ = measured_hessian(zero, x, y)
            turned = _turned(twin, turns)
            # The plain network with ReLU may be dead, the other is not.
            scale = float(np.abs(twin).max())
            values, same, other = map(np.linalg.eigvalsh, (matrix, twin, straight))
            top = float(np.abs(same).max())
            found = {
                "matrix_gap": gap(turned, matrix, scale),
                "spectrum_gap": gap(same, values, top),
                "unrotated_gap": gap(other, values, top),
            }
            rows += named(found, EPS * len(matrix), depth=depth, setting=setting)
    return rows


def _partial_products(weights: np.ndarray) -> list[np.ndarray]:
    """Return Q_0 = I, Q_1, … up to the whole map."""
    found = [np.eye(weights.shape[1])]
    for weight in weights:
        found.append(weight @ found[-1])
    return found


def _turned(matrix: np.ndarray, turns: list[np.ndarray]) -> np.ndarray:
    """Turn each layer of a Hessian into the frame of the plain network."""
    size, count = turns[0].size, len(turns) - 1
    frame = np.zeros((count * size, count * size))
    for r in range(count):
        place = slice(r * size, (r + 1) * size)
        frame[place, place] = np.kron(turns[r], turns[r + 1])
    return frame @ matrix @ frame.T


def _training(config: Config, trial: int) -> list[Row]:
    """Loss along gradient descent, of four networks on one dataset."""
    rows: list[Row] = []
    x, y = dataset(config, trial)
    shortcut, plain = _pair(config, config.trained)
    network = networks.build(plain, seed=trial, device=config.device)
    turn = _partial_products(networks.get_weights(network))[-1]
    xavier = plain.with_(init="xavier")
    runs = {
        "orthogonal": (network, y),
        "one_shortcut_turned": (at_zero(shortcut, config.device), y @ turn),
        "one_shortcut": (at_zero(shortcut, config.device), y),
        "xavier": (networks.build(xavier, seed=trial, device=config.device), y),
    }
    losses = {
        kind: _descend(config, net, x, targets) for kind, (net, targets) in runs.items()
    }
    first = losses["orthogonal"]
    for kind, loss in losses.items():
        away = float(np.abs(loss / first - 1).max())
        rows += named({"training_gap": away}, EPS * config.steps, kind=kind)
        if trial == config.seed:
            for step in range(0, config.steps + 1, max(1, config.steps // 20)):
                found = {"loss": loss[step]}
                rows += named(found, EPS * config.steps, kind=kind, step=step)
    return rows


def _descend(config: Config, network: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the loss before every step and after the last."""
    import torch

    inputs, targets = (torch.tensor(part, device=config.device) for part in (x, y))
    weights, found = list(network.parameters()), []
    for _ in range(config.steps + 1):
        loss = instruments.HalfSquareLoss()(network(inputs), targets)
        found.append(loss.item())
        slopes = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight.sub_(config.rate * slope)
    return np.array(found)


def _xavier(config: Config, trial: int) -> list[Row]:
    """Condition numbers of plain Xavier networks, from their moments."""
    rows: list[Row] = []
    data = moments(*dataset(config, trial))
    for depth in config.plain_depths:
        _, plain = _pair(config, depth)
        weights = networks.draw_weights(plain.with_(init="xavier"), seed=trial)
        values = np.linalg.eigvalsh(linear_hessian(plain, weights, data))
        found = condition_of(values)
        error = found.error if found.resolved else found.ratio
        rows += named({"xavier_ratio": found.ratio}, error, depth=depth)
    return rows


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Deviation of plain from 1-shortcut spectra, which equivalence sets to nothing."""
    rows: list[Row] = []
    for setting in ("linear", *NONLINEAR):
        found = measured.where(quantity="spectrum_gap", setting=setting)
        rows.append(
            {
                "label": f"deviation of spectra, orthogonal weights, {setting}",
                "predicted": 0.0,
                "measured": float(found.values().max()),
                "error": float(found.values("error").max()),
            }
        )
    return rows


STUDY = Study(
    title="Shortcuts of length 1 and no shortcuts: where they are the same",
    summary=(
        "The paper calls a shortcut of length 1 essentially equivalent to none. For "
        "linear networks that has an exact form: $I + V$ is just another matrix, and "
        "a plain network with orthogonal weights is a 1-shortcut network at zero in "
        "other coordinates, labels included. Hessians, spectra and whole training "
        "runs then agree to rounding. With Xavier weights condition numbers part "
        "exponentially, and with an activation nothing of it is left."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=equivalence_claims.CLAIMS,
    drawings=(
        Drawing(
            "equivalence",
            "Left: loss along gradient descent of linear networks; a plain orthogonal "
            "network (line) and a 1-shortcut network at zero with turned labels (dots) "
            "are one curve. Middle: largest deviation of eigenvalues between plain "
            "orthogonal networks and 1-shortcut networks at zero with turned labels, "
            "against depth. Right: condition numbers of plain Xavier networks and of "
            "1-shortcut networks at zero, with one standard deviation.",
            equivalence_figure.draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets.",
        "A unit of one matrix has no mid position, so activations stand before or "
        "after it.",
    ),
)
