r"""Figure 3: mean Frobenius norm of the weights along training, by depth.

Li et al. (2016), Demystifying ResNet, figure 3, section 4.1 and appendix B. The claim
in our words: 2-shortcut networks that start near zero stay near zero, the deeper the
nearer, along training and at its end, with or without ReLU at mid.

Departures: see ``STUDY.departures``. Cost: about 30 s of processor time at QUICK and
90 minutes at PAPER, nearly all of it for ReLU networks.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite import networks, training
from theodolite.core import Blueprint, ConfigError, Row, Rows, estimate
from theodolite.studies.committed_first import drawn, drawn_own, judged, own
from theodolite.studies.committed_run import CommittedRun
from theodolite.studies.li2016demystifying import (
    weight_norms_claims,
    weight_norms_figure,
)
from theodolite.studies.li2016demystifying.exact_optimum import exact_optimum
from theodolite.studies.li2016demystifying.measuring import EPS
from theodolite.studies.li2016demystifying.whitened import whitened
from theodolite.studies.study import Committed, Drawing, Study, StudyConfig
from theodolite.theory import linear_loss, moments

RUN = CommittedRun(__package__ or "", "weight_norms", free=("depths",))
NETWORKS: dict[str, dict[str, Any]] = {"linear": {}, "relu": {"mid": "relu"}}


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Depths, rates and data of figure 3.

    Attributes:
        dataset: Named dataset, whitened.
        width: Principal components kept.
        depths: Weight matrices, even numbers, at least three.
        steps: Updates of full-batch gradient descent.
        rates: Learning rates; every network trains at each.
        relu_stride: ReLU networks see every so-many-th sample; linear networks cost
            the same on all.
        per_decade: Steps measured as the step grows tenfold.
        committed: Digest of the committed rows to show and judge; empty for none.
    """

    dataset: str = "mnist5k"
    width: int = 10
    depths: tuple[int, ...] = (4, 8, 16, 32, 64)
    steps: int = 1000
    rates: tuple[float, ...] = (0.1, 0.2, 0.4)
    relu_stride: int = 10
    per_decade: int = 6
    committed: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(d % 2 for d in self.depths) or len(self.depths) < 3:
            raise ConfigError(
                f"depths {self.depths}: an exponent wants at least three, and "
                "2-shortcut networks want even ones"
            )

    @property
    def looked_at(self) -> tuple[int, ...]:
        """Steps at which norms are measured, the first and the last among them."""
        powers = range(int(self.per_decade * np.log10(self.steps)) + 1)
        found = {round(10 ** (k / self.per_decade)) for k in powers}
        return tuple(sorted({0, *found, self.steps}))


SMOKE = Config(
    n_seeds=3,
    dataset="digits",
    depths=(4, 8, 16),
    steps=200,
    rates=(0.2, 0.4),
    relu_stride=6,
    per_decade=5,
)
QUICK = Config(n_seeds=4, committed=RUN.digest())
PAPER = Config(
    n_seeds=10,
    dataset="mnist",
    depths=(4, 8, 16, 32, 48, 64),
    rates=(0.05, 0.1, 0.2, 0.4),
    relu_stride=1,
    per_decade=8,
)


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a network and depth, the dearest first."""
    found = [
        {"network": name, "depth": depth}
        for name in reversed(NETWORKS)
        for depth in sorted(config.depths, reverse=True)
    ]
    return [*found, *RUN.cells(config)]


def predict(config: Config) -> Rows:
    r"""Growth near zero, and what the optimal map says of the norms.

    Near zero a 2-shortcut linear network descends by $W_1 \leftarrow W_1 - \eta
    W_2^\top M$, $W_2 \leftarrow W_2 - \eta M W_1^\top$: along the singular vectors of
    $M$, $W_1$ and $W_2$ grow by $1 \pm \eta s_k$ a step, whatever the depth. From
    entries of variance $v$ the mean square norm after $t$ steps is
    $v\,d\sum_k\frac12[(1+\eta s_k)^{2t} + (1-\eta s_k)^{2t}]$.
    """
    data = moments(*whitened(config.dataset, config.width))
    plan = Blueprint(width=config.width, depth=2)
    single = np.linalg.svd(data.gap, compute_uv=False)
    best = np.linalg.svd(data.yx, compute_uv=False)
    variance = plan.init_scale**2 / config.width
    rows: list[Row] = []
    for rate in config.rates:
        for step in config.looked_at:
            with np.errstate(over="ignore"):
                growth = (1 + rate * single) ** (2 * step)
            square = config.width * np.sum(growth + (1 - rate * single) ** (2 * step))
            value = float(np.sqrt(variance * square / 2))
            if not np.isfinite(value):
                continue  # beyond what floats hold, far from zero
            rows.append({"quantity": "early_norm", "lr": rate, "step": step,
                         "value": value, "error": EPS * step * value})  # fmt: skip
    zero = np.zeros((2, config.width, config.width))
    found = {
        "first_loss": linear_loss(plan, zero, data),
        "optimal_loss": data.optimal_loss(),
        "xavier_norm": float(np.sqrt(config.width)),
        "rank": float(np.sum(best > 1e-10 * best[0])),
        "width": float(config.width),
    }
    rows += [
        {"quantity": name, "value": value, "error": EPS * config.width * value}
        for name, value in found.items()
    ]
    return Rows(rows)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train every seed at every rate, looking at the norms; or fetch committed rows."""
    if "source" in cell:
        return RUN.rows()
    x, y = whitened(config.dataset, config.width)
    if cell["network"] == "relu":
        x, y = x[:: config.relu_stride], y[:: config.relu_stride]
    plan = Blueprint(
        width=config.width, depth=cell["depth"], **NETWORKS[cell["network"]]
    )
    # On a GPU the samples of ReLU networks go through in float32, linear networks need
    # the moments only.
    single = config.device != "cpu" and not plan.linear
    dtype = "float32" if single else "float64"
    ends = _Ends()
    with warnings.catch_warnings():
        # That a rate loses every run is a result, and in the rows.
        warnings.simplefilter("ignore", training.GridWarning)
        grid = training.train_grid(
            plan,
            (x, y),
            {"seed": config.seeds, "lr": config.rates},
            steps=config.steps,
            probes=[
                training.Probe("norm", mean_norm, training.AtSteps(config.looked_at)),
                training.Probe("end", ends, training.AtSteps([config.steps])),
            ],
            device=config.device,
            dtype=dtype,
            jobs=0,
        )
    eps = float(np.finfo(dtype).eps)
    rows = [_labelled(row, eps) for row in grid.rows]
    if plan.linear:
        for weights, labels in ends.found:
            rows += _optimum(plan, weights, moments(x, y), labels)
    return Rows(rows)


def mean_norm(snapshot: Any) -> float:
    """Mean Frobenius norm over matrices."""
    weights = networks.get_weights(snapshot.model)
    return float(np.linalg.norm(weights, axis=(1, 2)).mean())


class _Ends:
    """Measures the largest unit at the end, and keeps the final weights."""

    def __init__(self) -> None:
        self.found: list[tuple[np.ndarray, dict[str, Any]]] = []

    def __call__(self, snapshot: Any) -> dict[str, float]:
        weights = networks.get_weights(snapshot.model)
        self.found.append((weights, snapshot.labels))
        units = np.linalg.norm(weights[1::2] @ weights[::2], ord=2, axis=(1, 2))
        return {"unit": units.max()}


def _labelled(row: Row, eps: float = EPS) -> Row:
    """Name the seed as studies do, and give probed numbers their rounding."""
    new = {key: value for key, value in row.items() if key != "seed"}
    new["trial"] = row["seed"]
    if row["quantity"] in ("norm", "end/unit"):
        new["error"] = 100 * eps * row["value"]
    return new


def _optimum(plan: Blueprint, weights: np.ndarray, data: Any, labels: Any) -> list[Row]:
    """Move a trained network onto an exact optimum, and look at its last unit."""
    there, condition = exact_optimum(plan, weights, data)
    unit = float(np.linalg.norm(there[-1] @ there[-2], ord=2))
    excess = linear_loss(plan, there, data) - data.optimal_loss()
    found = {
        "optimum_excess": (excess, EPS * condition),
        "optimum_unit": (unit, EPS * condition * unit),
    }
    return [
        _labelled({"quantity": name, **labels, "value": value, "error": error})
        for name, (value, error) in found.items()
    ]


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Early growth, and the exponent of the final norm beside theorem 1's."""
    rows: list[Row] = []
    measured = own(measured)
    for name in NETWORKS:
        found = weight_norms_claims.exponents(measured, name)
        rows.append(
            {
                "label": f"exponent of the final norm, {name}",
                "predicted": -0.5,
                "measured": estimate(found).mean,
                "error": estimate(found).stderr,
            }
        )
    for early in weight_norms_claims.early(predicted, measured):
        rows.append(
            {
                "label": f"norm after {early.step} steps, linear, depth {early.depth}",
                "predicted": early.predicted,
                "measured": early.measured.mean,
                "error": early.measured.stderr,
            }
        )
    return rows


_DRAWINGS = (
    Drawing(
        "norms",
        "Mean Frobenius norm of the weight matrices along training, at the highest "
        "rate at which no network diverges. Lines: mean over networks, bands one "
        "standard deviation. Dashed: growth near zero, the same at every depth.",
        weight_norms_figure.draw,
    ),
    Drawing(
        "scaling",
        "Mean norm at the end of training against the number of residual units, "
        "each depth at its best rate; both axes are logarithmic. Dotted: "
        "$R^{-1/2}$ through the last point.",
        weight_norms_figure.draw_scaling,
    ),
)


STUDY = Study(
    title="Figure 3: norms of the weights along training, by depth",
    summary=(
        "How far does a 2-shortcut network travel from zero? The measure is the mean "
        "Frobenius norm of its matrices along full-batch gradient descent on whitened "
        "digits, from a hundredth of Xavier weights. Theory says that all depths leave "
        "zero alike, along the singular vectors of $M$, and that a network of $R$ "
        "units needs norms of order $R^{-1/2}$: each unit does a share $1/R$ of the "
        "work, with two matrices. Networks are trained at a few rates."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=tuple(map(judged, weight_norms_claims.CLAIMS)),
    datasets=lambda config: (config.dataset,),
    drawings=(
        *map(drawn, _DRAWINGS),
        drawn_own(
            _DRAWINGS[0], "norms_here", "The same norms, from the networks of this run."
        ),
    ),
    committed=Committed(RUN.of_cell, ("quantity", "trial", "lr", "step")),
    departures=(
        "The paper gives neither depths nor rates: depths 4 to 64 are trained at a few "
        "rates. Along training depths are compared at one rate, the highest at which "
        "no network diverges, at the end each depth at its best.",
        "At the quick scale verdicts rest on a committed run at paper scale (60,000 "
        "digits, 10 networks a depth and rate); the run itself has 4, on 5,000 digits, "
        "of which ReLU networks see every tenth.",
        "Zero initialisation means a hundredth of Xavier weights, as in section 4.1: "
        "at exactly zero the gradient vanishes.",
    ),
)
