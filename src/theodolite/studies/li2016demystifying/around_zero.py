"""Around theorem 2: order of contact, biases, ReLU, and whether zero is a minimum.

Li et al. (2016), Demystifying ResNet, theorem 2.1, definition 4, assumption 3, lemma
3, Eq 3 and the prose of sections 2 and 4. The claim in our words: one has to move n
matrices of one unit to change the loss, and the picture of theorem 2 carries over to
ReLU networks and to units with biases. The first part holds; the rest does not.

Departures: random data; Eq 3 is measured with tanh as well as with ReLU, because at
exactly zero automatic differentiation takes the slope of ReLU to be 0. Cost: seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Blueprint, Row, Rows, condition_of
from theodolite.studies.li2016demystifying import around_zero_claims, around_zero_figure
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
    eigenvalues_at_zero,
    hessian_at_zero,
    moments,
    relu_spectrum_near_zero,
)

ORDERS = (2, 3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width, at several numbers of units.

    Attributes:
        small: Scale of the small weights at which ReLU networks are measured.
        step: Distance from zero at which the loss is compared.
    """

    width: int = 4
    samples: int = 24
    units: tuple[int, ...] = (1, 2, 4)
    small: float = 1e-6
    step: float = 0.01


SMOKE = Config(n_seeds=1, units=(1, 2))
QUICK = Config(n_seeds=5)
PAPER = Config(n_seeds=20, units=(1, 2, 4, 8))


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a task and dataset."""
    tasks = ("contact", "mixed", "bias", "relu")
    return [{"task": task, "trial": seed} for task in tasks for seed in config.seeds]


def predict(config: Config) -> Rows:
    r"""Curvature of the best quadratic through ReLU on $[-\delta, \delta]$."""
    rows: list[Row] = []
    for delta in (1.0, 0.1, 0.01):
        grid = delta * np.linspace(-1, 1, 20_001)
        fit = np.polynomial.Polynomial.fit(grid, np.maximum(grid, 0), 2).convert()
        found = {"relu_slope": fit.coef[1], "relu_curvature": 2 * fit.coef[2]}
        # A sum over the grid in place of the integral is off by its spacing.
        rows += named(found, {"relu_slope": 1e-9, "relu_curvature": 1e-3 / delta},
                      delta=delta)  # fmt: skip
    return Rows(rows)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one task on one dataset."""
    trial = cell["trial"]
    x, y = random_data(trial, samples=config.samples, width=config.width)
    task = {"contact": _contact, "mixed": _mixed, "bias": _bias, "relu": _relu}
    return Rows(task[cell["task"]](config, trial, x, y))


def _contact(config: Config, trial: int, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """Order of contact along a random direction, and the change along its mirror."""
    rows: list[Row] = []
    for n, setting in product(ORDERS, ("linear", "tanh")):
        plan = Blueprint(
            width=config.width, depth=2 * n, shortcut=n, **SETTINGS[setting]
        )
        way = networks.draw_weights(plan.with_(init="xavier"), seed=trial)
        mirror = way.copy()
        mirror[n - 1 :: n] *= -1
        loss = _loss_of(plan, config, x, y)
        start, t = loss(0 * way), config.step
        change = [loss(s * way) - start for s in (t / 2, t, 2 * t)]
        mirrored = loss(t * mirror) - start
        labels = {"n": n, "setting": setting}
        found = {"rise": change[1] / t**n, "mirror": mirrored / t**n}
        rows += named(found, EPS * start / t**n, **labels)
        # The step from t/2 to t is the estimate, its change from t to 2t the error.
        orders = [float(np.log2(abs(b / a))) for a, b in pairwise(change)]
        rows += named({"order": orders[0]}, abs(orders[0] - orders[1]), **labels)
    return rows


def _mixed(config: Config, trial: int, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """Mixed partial derivatives along a chain of entries through one unit.

    The loss of a linear network is a polynomial in them, so a mixed difference over
    the corners of a box is the derivative up to the next power of the step.
    """
    rows: list[Row] = []
    wanted = moments(x, y).gap[0, 1]
    for n in ORDERS[:3]:
        plan = Blueprint(width=config.width, depth=n, shortcut=n)
        loss = _loss_of(plan, config, x, y)
        # Entry (0, 2) of the last matrix, (2, 2) between, (2, 1) of the first.
        chain = [(layer, 2, 2) for layer in range(n)]
        chain[0], chain[-1] = (0, 2, 1), (n - 1, 0, 2)
        found = {
            "mixed": _difference(loss, plan, chain, config.step),
            "incomplete": _difference(loss, plan, chain[:-1], config.step),
            "expected": wanted,
        }
        rounding = 2**n * EPS * loss(np.zeros((n, plan.width, plan.width)))
        rows += named(found, rounding / config.step**n, n=n)
    return rows


def _difference(loss: Any, plan: Blueprint, chain: list, step: float) -> float:
    total = 0.0
    for signs in product((-1, 1), repeat=len(chain)):
        weights = np.zeros((plan.depth, plan.width, plan.width))
        for sign, place in zip(signs, chain, strict=True):
            weights[place] = sign * step
        total += float(np.prod(signs)) * loss(weights)
    return total / (2 * step) ** len(chain)


def _bias(config: Config, trial: int, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """Units of Eq 3: how many flat directions, and what the rest is."""
    rows: list[Row] = []
    for units in config.units:
        plan = Blueprint(width=config.width, depth=2 * units, mid="tanh", bias=True)
        matrix, reading = measured_hessian(at_zero(plan, config.device), x, y)
        size = np.sort(np.abs(np.linalg.eigvalsh(matrix)))
        flat = int((size < 1e-10 * size[-1]).sum())
        without = np.abs(eigenvalues_at_zero(plan.with_(bias=False), x, y))
        relu = plan.with_(mid="relu", init="small", init_scale=config.small)
        network = networks.build(relu, seed=trial, device=config.device)
        near = np.abs(np.linalg.eigvalsh(measured_hessian(network, x, y)[0]))
        labels = {"units": units}
        counts = {
            "flat": flat,
            "flat_expected": config.width * units,
            # What is flat moves by the square of the small weights, far below this.
            "flat_relu": int((near < config.small * near.max()).sum()),
        }
        rows += named(counts, 0.0, **labels)
        relative = EPS * len(matrix) + reading.asymmetry
        rows += named(
            {"closed_form": gap(hessian_at_zero(plan, x, y), matrix, size[-1])},
            relative,
            **labels,
        )
        sized = {"largest": size[-1], "largest_of_theorem": without.max()}
        rows += named(sized, relative * size[-1], **labels)
    return rows


def _relu(config: Config, trial: int, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """ReLU at mid: at exactly zero, and at small weights."""
    rows: list[Row] = []
    for units in config.units:
        plan = Blueprint(width=config.width, depth=2 * units, mid="relu")
        origin, _ = measured_hessian(at_zero(plan, config.device), x, y)
        small = plan.with_(init="small", init_scale=config.small)
        network = networks.build(small, seed=trial, device=config.device)
        matrix, reading = measured_hessian(network, x, y)
        values = np.linalg.eigvalsh(matrix)
        masked = relu_spectrum_near_zero(networks.get_weights(network)[::2], x, y)
        smooth = eigenvalues_at_zero(plan, x, y)
        scale = float(np.abs(values).max())
        relative = EPS * len(matrix) + reading.asymmetry
        labels = {"units": units}
        for name, spectrum in (("", values), ("_printed", smooth)):
            found = condition_of(spectrum, quantile=0.0)
            rows += named({f"condition{name}": found.ratio}, found.error, **labels)
            rows += named({f"largest{name}": found.largest}, relative * scale, **labels)
        gaps = {"printed": gap(smooth, values, scale)}
        gaps["half_space"] = gap(masked, values, scale)
        rows += named(gaps, relative, **labels)
        rows += named({"origin": np.abs(origin).max()}, relative * scale, **labels)
    return rows


def _loss_of(plan: Blueprint, config: Config, x: np.ndarray, y: np.ndarray) -> Any:
    """Return the loss of a network as a function of its weights."""
    import torch

    network = at_zero(plan, config.device)
    inputs, targets = (torch.tensor(part, device=config.device) for part in (x, y))

    def loss(weights: np.ndarray) -> float:
        networks.set_weights(network, weights)
        with torch.no_grad():
            return float(instruments.HalfSquareLoss()(network(inputs), targets))

    return loss


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Orders of contact beside n, and Eq 9 beside ReLU networks."""
    rows: list[Row] = []
    for n in ORDERS:
        orders = measured.where(quantity="order", n=n)
        rows.append(
            {
                "label": f"order of contact, n = {n}",
                "predicted": float(n),
                "measured": float(orders.values().mean()),
                "error": float(orders.values("error").max()),
            }
        )
    deepest = max(measured.levels("units"))
    for trial in measured.where(quantity="condition").levels("trial")[:3]:
        labels = {"units": deepest, "trial": trial}
        found = measured.only(quantity="condition", **labels)
        rows.append(
            {
                "label": f"cond(H), ReLU at mid, small weights, dataset {trial}",
                "predicted": measured.value(quantity="condition_printed", **labels),
                "measured": found["value"],
                "error": found["error"],
            }
        )
    return rows


STUDY = Study(
    title="Around zero: order of contact, biases, ReLU, and whether it is a minimum",
    summary=(
        "The loss moves only when all $n$ matrices of some unit move, so it leaves "
        "zero at order $t^n$: zero is a stationary point of order $n-1$. The paper "
        "goes on to carry theorem 2 over to units with biases (Eq 3) and to ReLU, and "
        "calls zero a local minimum. Measured, biases add flat directions, ReLU sees "
        "half of the data through each hidden unit, and zero is a saddle for every $n$."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=around_zero_claims.CLAIMS,
    drawings=(
        Drawing(
            "relu",
            "Largest eigenvalue and condition number of 2-shortcut ReLU networks at "
            "small random weights, each point a dataset and number of units, against "
            "what Eqs 9 and 26 give with slope ½. On the line they would agree.",
            around_zero_figure.draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets.",
        "Eq 3 has ReLU; at exactly zero it is measured with tanh, because automatic "
        "differentiation takes the slope of ReLU at 0 to be 0; the count of flat "
        "directions is taken with ReLU at small weights as well.",
    ),
)
