"""Theorem 1: deep residual networks that fit any data have small weights.

Li et al. (2016), Demystifying ResNet, theorem 1, lemmas 1 and 2, definition 3,
assumptions 1 and 2, Eqs 3–7 and 11–20, figure 10. The claim in our words: samples on
the unit sphere can be walked to their labels one step a unit, around one another, so
that some network of R units interpolates with weights of size O(R^-1/2).

Departures: see ``STUDY.departures``. Cost: seconds at QUICK, minutes at PAPER.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError, Row, Rows
from theodolite.studies.li2016demystifying import (
    small_weights_claims,
    small_weights_figure,
)
from theodolite.studies.li2016demystifying.measuring import named
from theodolite.studies.li2016demystifying.small_weights_tasks import (
    digits,
    one_unit,
    rounding,
)
from theodolite.studies.li2016demystifying.sphere_data import (
    outputs,
    points,
    run_chain,
    torch_network,
    torch_propagate,
)
from theodolite.studies.li2016demystifying.sphere_rows import picture, straight_least
from theodolite.studies.study import Drawing, Study, StudyConfig
from theodolite.theory import (
    interpolating_network,
    minimum_distance,
    weight_norm_bound,
)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Sets of points, and how many units they get.

    Attributes:
        cases: ``basis``, ``detour``, or samples and width of random points.
        steps: Units a sample.
        whole: Up to this many units a module is built; longer chains go through one
            unit with weights exchanged, which computes the same.
        distances: Least distances at which rounding is tried.
        length: Length of the path on which it is.
        trap_steps: Units a sample there.
        dataset: Digits whose labels and norms are looked at.
        samples: How many of them are interpolated.
    """

    cases: tuple[str, ...] = ("basis", "detour", "6,4", "12,3", "12,10")
    steps: tuple[int, ...] = (10, 20, 40, 80, 160)
    whole: int = 120
    distances: tuple[float, ...] = (0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05)
    length: float = 1.5
    trap_steps: int = 200
    dataset: str = "mnist5k"
    samples: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.steps) < 3:
            raise ConfigError(f"steps {self.steps}: a slope wants at least three")


SMOKE = Config(
    n_seeds=1,
    cases=("basis", "detour", "6,4"),
    steps=(10, 20, 40),
    distances=(0.6, 0.4, 0.3, 0.2, 0.05),
    trap_steps=100,
    dataset="digits",
)
QUICK = Config(n_seeds=2)
PAPER = Config(n_seeds=5, steps=(10, 20, 40, 80, 160, 320, 640))


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a case and trial, and the smaller tasks."""
    walks = [
        {"task": "walk", "case": case, "trial": seed}
        for case in config.cases
        for seed in (config.seeds if "," in case else config.seeds[:1])
    ]
    others = [
        {"task": task, "case": "", "trial": seed}
        for task in ("lemma", "trap")
        for seed in config.seeds
    ]
    return [*walks, *others, {"task": "labels", "case": "", "trial": config.seed}]


def predict(config: Config) -> Rows:
    """Bounds, limits and lengths of every case, and the picture of lemma 2."""
    rows: list[Row] = []
    for cell in cells(config):
        if cell["task"] != "walk":
            continue
        labels = {"case": cell["case"], "trial": cell["trial"]}
        x, y = points(**labels)
        m = len(x)
        network = interpolating_network(x, y, m)
        rho, longest = network.rho, float(network.lengths.max())
        found = {
            "rho": rho,
            "limit": np.sqrt(8 * m * longest) / rho,
            "length_share": longest / (np.pi * (1 + rho * (m - 1) / 2)),
            "detours": sum(path.detours for path in network.paths),
            "straight": straight_least(x, y) / rho,
        }
        rows += named(found, 1e-12, **labels)
        for steps in config.steps:
            units = m * steps
            bounds = {
                "bound": weight_norm_bound(rho=rho, samples=m, units=units),
                # With the constant of the proof, the bracket outside the root.
                "printed": np.sqrt(8 * np.pi * m / (units * rho)) * (m + 1 / rho),
            }
            rows += named(bounds, 1e-12, units=units, samples=m, **labels)
    return Rows([*rows, *picture(), *_circle()])


def _circle() -> list[Row]:
    """On a circle both ways from a point to its antipode are barred."""
    angle = np.linspace(0, np.pi, 2001)
    ways = [np.stack([np.cos(angle), s * np.sin(angle)], axis=1) for s in (1, -1)]
    bars = np.array([[0.0, 1.0], [0.0, -1.0]])
    least = [np.linalg.norm(w[:, None] - bars, axis=2).min() for w in ways]
    return named({"circle": max(least)}, 1e-12)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Run one task."""
    task = {"walk": _walk, "lemma": one_unit, "trap": rounding, "labels": digits}
    return Rows(task[cell["task"]](config, cell))


def _walk(config: Config, cell: Mapping[str, Any]) -> list[Row]:
    """Build networks of growing depth, and see where torch takes the samples."""
    rows: list[Row] = []
    x, y = points(cell["case"], cell["trial"])
    for steps in config.steps:
        seen = [x]
        propagate = torch_propagate(x.shape[1], config.device, seen)
        built = interpolating_network(x, y, steps * len(x), propagate=propagate)
        parts = built.first, built.second, built.bias
        if built.units <= config.whole:
            made = outputs(torch_network(*parts, config.device), x)
        else:
            made = run_chain(*parts, x, config.device)
        least = min(minimum_distance(state) for state in seen)
        found = {
            "max_norm": built.max_norm,
            "max_bias": built.max_bias,
            "clearance": least / built.rho,
            "output_error": np.abs(made - y).max(),
        }
        rounding = 1e-13 / built.rho**2
        rows += named(found, rounding, units=built.units, samples=len(x))
    return rows


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Limit of the largest norm times the root of R, beside the deepest network."""
    rows: list[Row] = []
    for row in predicted.where(quantity="limit"):
        labels = {"case": row["case"], "trial": row["trial"]}
        found = measured.where(quantity="max_norm", **labels)
        deepest = max(found.column("units"))
        norm = found.only(units=deepest)
        rows.append(
            {
                "label": f"max ‖W‖ √R, points {row['case']}, trial {row['trial']}, "
                f"{deepest} units",
                "predicted": row["value"],
                "measured": norm["value"] * np.sqrt(deepest),
                "error": norm["error"] * np.sqrt(deepest),
            }
        )
    return rows


STUDY = Study(
    title="Theorem 1: interpolation with weights that shrink as depth grows",
    summary=(
        "Samples and labels are points on the unit sphere, at least $\\rho$ apart. A "
        "unit $x + W_2\\,\\mathrm{ReLU}(W_1 x + b)$ can move one of them a short step "
        "and leave the others alone, so a chain of units walks each sample to its "
        "label, around the caps of the others. More units, shorter steps: the weights "
        "shrink like $R^{-1/2}$. Here the network is built for given points, run in "
        "torch, and its norms are set beside the bound."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=small_weights_claims.CLAIMS,
    datasets=lambda config: (config.dataset,),
    drawings=(
        Drawing(
            "path",
            "Left: one sample's way to its label (dots: a unit each) around the caps "
            "of two others that the straight arc, dashed, would enter. Right: largest "
            "norm of a weight matrix against the number of units, by number of samples "
            "and width; lines are the bound of the proof, corrected.",
            small_weights_figure.draw,
        ),
    ),
    departures=(
        "Units are built from where the units before them really leave the samples: "
        "from the path alone, as in the proof, rounding takes over at small "
        "distances.",
        "Detours keep a billionth of their radius more distance than asked for, so "
        "that rounding cannot put a sample inside a cap.",
        "Random points and labels of unit norm; one-hot labels only where they are "
        "distinct.",
    ),
)
