r"""Figures 5 and 6: eigenvalues, index and gradient along training.

Li et al. (2016), Demystifying ResNet, figures 5 and 6, section 5.2 and appendix B. The
claim in our words: at equal loss a 2-shortcut linear network of depth 16 is better
conditioned than plain ones and has fewer negative eigenvalues; the index drops at the
start, while the gradient is largest.

Departures: see ``STUDY.departures``. Cost: about 40 s of processor time at QUICK,
ten minutes at PAPER, nearly all of it eigenvalues of 1600 parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite import training
from theodolite.core import Blueprint, Row, Rows
from theodolite.studies.committed_first import drawn, drawn_own, judged, own
from theodolite.studies.committed_run import CommittedRun
from theodolite.studies.li2016demystifying import (
    along_training_claims,
    along_training_figure,
)
from theodolite.studies.li2016demystifying.along_training_states import (
    States,
    onto_levels,
    optimum_rows,
    start_rows,
)
from theodolite.studies.li2016demystifying.measuring import EPS
from theodolite.studies.li2016demystifying.whitened import whitened
from theodolite.studies.study import Committed, Drawing, Study, StudyConfig
from theodolite.theory import (
    Moments,
    conditioning_at_zero,
    linear_loss,
    moments,
)

RUN = CommittedRun(__package__ or "", "along_training")
# As at initialisation (figure 4), each with a rate below two over its largest
# curvature on the way.
KINDS: dict[str, dict[str, Any]] = {
    "xavier": {"shortcut": 1, "skip": False, "init": "xavier"},
    "orthogonal": {"shortcut": 1, "skip": False, "init": "orthogonal"},
    "one_shortcut": {"shortcut": 1, "init": "small"},
    "two_shortcut": {"shortcut": 2, "init": "small"},
}
RATES = {
    "xavier": 0.002,
    "orthogonal": 0.01,
    "one_shortcut": 0.01,
    "two_shortcut": 0.05,
}
# The kinds that the prose compares, which all seeds and depths see.
PAIR = ("two_shortcut", "orthogonal")


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Depths, levels and data of figures 5 and 6.

    Attributes:
        dataset: Named dataset, whitened.
        width: Principal components kept.
        depths: Weight matrices; the first is the paper's, with every kind, the others
            are checks with the two kinds that the prose compares.
        n_others: Seeds of the kinds that the prose does not compare.
        shallow: Depths at which the index is counted at the start.
        fractions: Levels of the loss: the optimum plus these fractions of the way to
            the loss at zero weights.
        steps: Updates of each run at most.
        run_steps: Updates of the run of figure 6, right.
        every: Steps between its Hessians.
        measured_depth: Up to this depth the first network's Hessians are measured by
            double backward; all others come from second moments.
        committed: Digest of the committed rows to show and judge; empty for none.
    """

    dataset: str = "mnist5k"
    width: int = 10
    depths: tuple[int, ...] = (16, 12)
    n_others: int = 1
    shallow: tuple[int, ...] = (2, 4, 8)
    fractions: tuple[float, ...] = (0.75, 0.3, 0.1, 0.02, 0.005, 0.0015)
    steps: int = 4000
    run_steps: int = 150
    every: int = 10
    measured_depth: int = 12
    committed: str = ""


SMOKE = Config(
    n_seeds=2,
    dataset="digits",
    depths=(6, 4),
    n_others=2,
    shallow=(2, 4),
    fractions=(0.6, 0.2, 0.04, 0.01, 0.003),
    steps=2500,
    run_steps=150,
    every=10,
)
QUICK = Config(n_seeds=4, committed=RUN.digest())
PAPER = Config(
    n_seeds=10,
    dataset="mnist",
    n_others=10,
    fractions=(0.9, 0.75, 0.6, 0.4, 0.25, 0.15, 0.08, 0.04, 0.025, 0.015, 0.01, 0.007,
               0.005, 0.003, 0.002, 0.0015, 0.001),
    steps=20_000,
    run_steps=300,
    every=3,
    measured_depth=16,
)  # fmt: skip


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a run, the deepest first."""
    found = []
    for depth in config.depths:
        for kind in KINDS if depth == config.depths[0] else PAIR:
            n = config.n_seeds if kind in PAIR else config.n_others
            found += [
                {"task": "levels", "kind": kind, "depth": depth, "trial": seed}
                for seed in config.seeds[:n]
            ]
    run = {"task": "run", "kind": PAIR[0], "depth": config.depths[0]}
    starts = [
        {"task": "start", "kind": kind, "depth": depth, "trial": seed}
        for depth in config.shallow
        for kind in ("xavier", "orthogonal")
        for seed in config.seeds
    ]
    return [{**run, "trial": config.seed}, *found, *starts, *RUN.cells(config)]


def predict(config: Config) -> Rows:
    """Closed forms at zero weights, the optimal loss, and the rank at an optimum."""
    x, y = whitened(config.dataset, config.width)
    data = moments(x, y)
    rows: list[Row] = []
    for depth in config.depths:
        plan = Blueprint(width=config.width, depth=depth)
        found = conditioning_at_zero(plan, x, y)
        for name in ("ratio", "largest", "small", "index"):
            value = float(getattr(found, name))
            rows.append(
                {"quantity": name, "kind": "two_shortcut", "depth": depth,
                 "value": value, "error": 1e-13 * value}
            )  # fmt: skip
    found = {
        "optimal_loss": data.optimal_loss(),
        "first_loss": _first_loss(data),
        # At an optimum the error vanishes and the Hessian is J'J, with as many rows
        # as the map has entries.
        "rank_at_optimum": float(config.width**2),
    }
    rows += [
        {"quantity": name, "value": value, "error": EPS * config.width * value}
        for name, value in found.items()
    ]
    return Rows(rows)


def _first_loss(data: Moments) -> float:
    plan = Blueprint(width=data.width, depth=2)
    return linear_loss(plan, np.zeros((2, data.width, data.width)), data)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train one network, and read its Hessian on the way; or fetch committed rows."""
    if "source" in cell:
        return RUN.rows()
    x, y = whitened(config.dataset, config.width)
    plan = Blueprint(width=config.width, depth=cell["depth"], **KINDS[cell["kind"]])
    if cell["task"] == "start":
        return Rows(start_rows(plan, moments(x, y), cell["trial"]))
    first = cell["trial"] == config.seed
    states = States(
        plan, moments(x, y), first and cell["depth"] <= config.measured_depth
    )
    task = _run if cell["task"] == "run" else _levels
    return Rows(task(config, cell, states, (x, y)))


def _levels(
    config: Config, cell: Mapping[str, Any], states: States, data: tuple[Any, Any]
) -> list[Row]:
    """Read the Hessian at the first step below each level, then interpolate."""
    best, top = states.data.optimal_loss(), _first_loss(states.data)
    levels = {f: best + f * (top - best) for f in config.fractions}
    grid = training.train_grid(
        states.plan,
        data,
        {"seed": [cell["trial"]], "lr": [RATES[cell["kind"]]]},
        steps=config.steps,
        probes=[
            training.Probe("start", states, training.AtSteps([0])),
            training.Probe("level", states, training.AtLosses(levels.values())),
        ],
        device=config.device,
        jobs=0,
    )
    rows = [_state(row) for row in grid.rows if "/" in row["quantity"]]
    first = [{**row, "fraction": None} for row in rows if row["step"] == 0]
    found = [*first, *onto_levels(rows, levels), *states.gaps]
    if cell["kind"] in PAIR and cell["trial"] == config.seed:
        found += optimum_rows(states)
    return found


def _run(
    config: Config, cell: Mapping[str, Any], states: States, data: tuple[Any, Any]
) -> list[Row]:
    """Read gradient and Hessian on an even grid of steps."""
    grid = training.train_grid(
        states.plan,
        data,
        {"seed": [cell["trial"]], "lr": [RATES[cell["kind"]]]},
        steps=config.run_steps,
        probes=[training.Probe("run", states, training.Every(config.every))],
        device=config.device,
        jobs=0,
    )
    rows = [_state(row) for row in grid.rows if "/" in row["quantity"]]
    return [*rows, *states.gaps]


def _state(row: Row) -> Row:
    """Drop what names the run, which the cell does, and the probe's name."""
    kept = {k: v for k, v in row.items() if k not in ("seed", "lr", "level")}
    return {**kept, "quantity": row["quantity"].split("/")[1]}


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Closed form at zero beside the first state of 2-shortcut networks."""
    rows: list[Row] = []
    measured = own(measured)
    for depth in measured.where(task="levels", kind="two_shortcut").levels("depth"):
        first = measured.where(task="levels", kind="two_shortcut", depth=depth, step=0)
        for name in ("largest", "small", "index"):
            found = first.where(quantity=name).values()
            rows.append(
                {
                    "label": f"{name} at the start, 2-shortcut, depth {depth}",
                    "predicted": predicted.value(quantity=name, depth=depth),
                    "measured": float(found.mean()),
                    "error": float(found.std(ddof=1) / np.sqrt(len(found)))
                    if len(found) > 1
                    else None,
                }
            )
    return rows


_DRAWINGS = (
    Drawing(
        "eigenvalues",
        "Largest magnitude (solid, filled) and 10th percentile (dashed, hollow) of "
        "the eigenvalues at equal excess loss. Points: geometric mean over "
        "networks, bands one standard deviation of the logarithm.",
        along_training_figure.draw_eigenvalues,
    ),
    Drawing(
        "ratio",
        "Ratio of the two at equal excess loss, one panel a depth. Training goes "
        "from left to right, and the ratio grows without bound.",
        along_training_figure.draw_ratio,
    ),
    Drawing(
        "index",
        "Fraction of negative eigenvalues at equal excess loss, mean and standard "
        "deviation over networks. Dotted: ½, the value at zero weights.",
        along_training_figure.draw_index,
    ),
    Drawing(
        "run",
        "One run of a 2-shortcut network: norm of the gradient and curvature along "
        "it (above), index (below). Dotted: the step at which the gradient is "
        "largest.",
        along_training_figure.draw_run,
    ),
)


STUDY = Study(
    title="Figures 5 and 6: eigenvalues, index and gradient along training",
    summary=(
        "A good start does not make an easy trip. Networks are trained by full-batch "
        "gradient descent on whitened digits; at common levels of the loss the Hessian "
        "is taken, and its largest magnitude, its 10th percentile and its fraction of "
        "negative eigenvalues (the index) are interpolated for each run. Theory knows "
        "both ends. At zero weights a 2-shortcut network has the condition number of "
        "the data and index $1/2$. At an optimum the Hessian is $J^T J$, whose rank "
        "is at most $d^2$ of $L\\,d^2$ parameters, so that the 10th percentile goes to "
        "zero and the ratio to infinity, for every linear network of two layers or "
        "more."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=tuple(map(judged, along_training_claims.CLAIMS)),
    datasets=lambda config: (config.dataset,),
    drawings=(
        *map(drawn, _DRAWINGS),
        drawn_own(
            _DRAWINGS[1],
            "ratio_here",
            "The same ratio, from the networks of this run.",
        ),
    ),
    committed=Committed(RUN.of_cell, ("quantity", "fraction", "step")),
    departures=(
        "Hessians are taken at the first step at or below each level, not at every "
        "epoch, and interpolated between those states; the distance to the nearest "
        "state is the error.",
        "Levels are fractions of the excess over the optimal loss, since the prose is "
        "about what happens near it.",
        "The paper does not state rates: 0.05 for 2-shortcut, 0.01 for orthogonal and "
        "1-shortcut, 0.002 for Xavier weights.",
        "A second depth is a check that the paper does not make.",
        "At the quick scale verdicts rest on a committed run at paper scale (60,000 "
        "digits, 10 networks of each kind); the run itself has 4 networks, one of the "
        "Xavier and 1-shortcut kinds.",
        "Beyond the first network of a kind Hessians come from weights and second "
        "moments, which is the same matrix.",
    ),
)
