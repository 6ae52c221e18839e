"""Hessians and training of 1-shortcut and plain networks, pair by pair."""

from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Cell, Row, Rows, ShortcutBlueprint, condition_of

from ..shared.hessians import at_zero, measured_hessian
from ..shared.problems import EPS, gap, named
from .config import SHORTCUTS, UNITS, Config, dataset, shortcut_matrices

# Condition numbers of plain networks with an activation are cut off here, as a lower
# bound: with ReLU they are often infinite, and their mean would not exist.
CEILING = 1e4
# A network at W and one at I + W are compared up to this depth.
IDENTITY_DEPTH = 4


def measure(config: Config, cell: Cell) -> Rows:
    """Run one task on one dataset."""
    task = {
        "identity": _identity,
        "rotation": _rotation,
        "training": _training,
        "general": _general,
    }
    return Rows(task[cell["task"]](config, cell["trial"]))


def _pair(
    config: Config, depth: int, **names: Any
) -> tuple[ShortcutBlueprint, ShortcutBlueprint]:
    """Return a 1-shortcut network and the plain one with the same layers."""
    shortcut = ShortcutBlueprint(width=config.width, depth=depth, shortcut=1, **names)
    return shortcut, shortcut.with_(skip=False, init="orthogonal")


def _identity(config: Config, trial: int) -> list[Row]:
    """Compare Hessians of a 1-shortcut network at W and a plain one at I + W."""
    rows: list[Row] = []
    x, y = dataset(config, trial)
    for setting, names, depth in config.settings:
        if depth > IDENTITY_DEPTH:
            continue
        shortcut, plain = _pair(config, depth, **names)
        drawn = networks.initial_weights(shortcut.with_(init="xavier"), seed=trial)
        table = []
        for plan, shift in ((shortcut, 0.0), (plain, np.eye(config.width))):
            network = at_zero(plan, config.device)
            networks.set_weights(network, 0.1 * drawn + shift)
            table.append(measured_hessian(network, x, y)[0])
        scale = float(np.abs(table[0]).max())
        row = {"identity_gap": gap(table[1], table[0], scale)}
        rows += named(row, EPS * len(table[0]), depth=depth, setting=setting)
    return rows


def _rotation(config: Config, trial: int) -> list[Row]:
    r"""Compare a plain orthogonal network with a 1-shortcut one with rotated labels.

    With $Q_r = O_r \cdots O_1$ and $W_r = Q_r(I + V_r)Q_{r-1}^T$ the plain map is
    $Q_R\prod(I + V_r)$, so $Q_{r-1} \otimes Q_r$ rotates $\mathrm{vec}\,W_r$.
    """
    rows: list[Row] = []
    x, y = dataset(config, trial)
    for setting, names, depth in config.settings:
        shortcut, plain = _pair(config, depth, **names)
        network = networks.build(plain, seed=trial, device=config.device)
        turns = _partial_products(networks.get_weights(network))
        matrix, _ = measured_hessian(network, x, y)
        zero = at_zero(shortcut, config.device)
        twin, _ = measured_hessian(zero, x, y @ turns[-1])
        straight, _ = measured_hessian(zero, x, y)
        values, same, other = map(np.linalg.eigvalsh, (matrix, twin, straight))
        # A plain ReLU network may have no Hessian; the 1-shortcut network has one.
        scale, top = float(np.abs(twin).max()), float(np.abs(same).max())
        numbers = {
            "matrix_gap": gap(_turned(twin, turns), matrix, scale),
            "spectrum_gap": gap(same, values, top),
            "unrotated_gap": gap(other, values, top),
        }
        labels = {"depth": depth, "setting": setting}
        rows += named(numbers, EPS * len(matrix), **labels)
        xavier = networks.build(
            plain.with_(init="xavier"), seed=trial, device=config.device
        )
        spread = np.linalg.eigvalsh(measured_hessian(xavier, x, y)[0])
        spectra = {"one_shortcut": other, "orthogonal": values, "xavier": spread}
        for kind, spectrum in spectra.items():
            condition = condition_of(spectrum)
            ratio, error = condition.ratio, condition.error
            if names and kind != "one_shortcut" and condition.least > CEILING:
                ratio, error = CEILING, 0.0
            rows += named({"ratio": ratio}, error, kind=kind, **labels)
    return rows


def _partial_products(weights: np.ndarray) -> list[np.ndarray]:
    """Return the products Q_0 = I, Q_1, … up to the whole map."""
    products = [np.eye(weights.shape[1])]
    for weight in weights:
        products.append(weight @ products[-1])
    return products


def _turned(matrix: np.ndarray, turns: list[np.ndarray]) -> np.ndarray:
    """Return a Hessian with each layer rotated into the frame of the plain network."""
    size, count = turns[0].size, len(turns) - 1
    frame = np.zeros((count * size, count * size))
    for r in range(count):
        place = slice(r * size, (r + 1) * size)
        frame[place, place] = np.kron(turns[r], turns[r + 1])
    return frame @ matrix @ frame.T


def _training(config: Config, trial: int) -> list[Row]:
    """Return losses along gradient descent of four networks on one dataset."""
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
    for kind, loss in losses.items():
        away = float(np.abs(loss / losses["orthogonal"] - 1).max())
        rows += named({"training_gap": away}, EPS * config.steps, kind=kind)
        if trial == config.seed:
            for step in range(0, config.steps + 1, max(1, config.steps // 20)):
                numbers = {"loss": loss[step]}
                rows += named(numbers, EPS * config.steps, kind=kind, step=step)
    return rows


def _descend(config: Config, network: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the loss before every step and after the last."""
    import torch

    inputs, targets = (torch.tensor(part, device=config.device) for part in (x, y))
    weights, losses = list(network.parameters()), []
    for _ in range(config.steps + 1):
        loss = instruments.HalfSquareLoss()(network(inputs), targets)
        losses.append(loss.item())
        slopes = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight.sub_(config.rate * slope)
    return np.array(losses)


def _general(config: Config, trial: int) -> list[Row]:
    """Return curvatures at zero of networks with any shortcuts, as in Eq 1."""
    rows: list[Row] = []
    x, y = dataset(config, trial)
    for kind in SHORTCUTS:
        shortcuts = shortcut_matrices(config, kind, trial)
        for lengths in UNITS:
            network = _general_network(shortcuts[: len(lengths)], lengths)
            matrix, _ = measured_hessian(network.to(config.device), x, y)
            sizes = np.sort(np.abs(np.linalg.eigvalsh(matrix)))[::-1]
            rounding = EPS * len(matrix) * sizes[0]
            labels = {"shortcuts": kind, "units": len(lengths)}
            for rank, size in enumerate(sizes):
                rows += named({"curvature": size}, rounding, rank=rank, **labels)
            bent = sizes[: 2 * config.width**2 * lengths.count(2)]
            ratio = bent[0] / bent[-1]
            error = rounding * (1 + ratio) / bent[-1]
            rows += named({"general_ratio": ratio}, error, **labels)
    return rows


def _general_network(shortcuts: np.ndarray, lengths: tuple[int, ...]) -> Any:
    """Build the linear network of Eq 1 with all its weights at zero."""
    import torch

    class Unit(torch.nn.Module):
        shortcut: torch.Tensor

        def __init__(self, shortcut: np.ndarray, length: int) -> None:
            super().__init__()
            zeros = torch.zeros(length, *shortcut.shape, dtype=torch.float64)
            self.weights = torch.nn.ParameterList(list(zeros))
            self.register_buffer("shortcut", torch.tensor(shortcut))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            branch = x
            for weight in self.weights:
                branch = branch @ weight.T
            return branch + x @ self.shortcut.T

    return torch.nn.Sequential(*map(Unit, shortcuts, lengths))
