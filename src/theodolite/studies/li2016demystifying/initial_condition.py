"""Figure 4: initial condition numbers of linear networks against depth.

Li et al. (2016), Demystifying ResNet, figure 4, section 5.1 and appendix B. The claim
in our words: the ratio of the largest to the tenth-percentile eigenvalue magnitude of
the Hessian at the start stays constant with depth for 2-shortcut networks, grows for
orthogonal and 1-shortcut ones and explodes for Xavier ones.

Departures: see ``STUDY.departures``. Cost: about a minute of processor time at QUICK
and an hour at PAPER, most of it in the eigenvalues at depths 64 and 96; a network of
depth 96 takes about 3 GiB.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import (
    Blueprint,
    ConfigError,
    NormMode,
    Row,
    Rows,
    Status,
    condition_of,
    estimate,
    stream,
)
from theodolite.studies.committed_first import drawn, drawn_own, judged, own
from theodolite.studies.committed_run import CommittedRun
from theodolite.studies.li2016demystifying import (
    initial_condition_claims,
    initial_condition_figure,
)
from theodolite.studies.li2016demystifying.measuring import (
    EPS,
    gap,
    measured_hessian,
)
from theodolite.studies.li2016demystifying.whitened import whitened
from theodolite.studies.study import Committed, Drawing, Study, StudyConfig
from theodolite.theory import (
    conditioning_at_zero,
    eigenvalues_at_zero,
    equivalent_samples,
    linear_hessian,
    moments,
    unit_blocks,
)

RUN = CommittedRun(__package__ or "", "initial_condition", free=("depths",))
# Depth 32 at width 10 takes 3 matrices of 3200².
MEASURED_BYTES = 2**30
# Plain networks start at Xavier or orthogonal weights; shortcut networks at a
# hundredth of Xavier weights, as in section 4.1.
KINDS: dict[str, dict[str, Any]] = {
    "xavier": {"shortcut": 1, "skip": False, "init": "xavier"},
    "orthogonal": {"shortcut": 1, "skip": False, "init": "orthogonal"},
    "one_shortcut": {"shortcut": 1, "init": "small"},
    "two_shortcut": {"shortcut": 2, "init": "small"},
}


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Depths and data of figure 4.

    Attributes:
        dataset: Named dataset, whitened.
        width: Principal components kept.
        depths: Weight matrices of the measured networks, even numbers.
        predicted_depths: Depths for the closed forms, which cost little.
        measured_depth: Up to this depth Hessians are measured by double backward, on
            few samples with the same second moments; beyond it they are computed from
            the moments, which is the same matrix and takes less memory.
        samples_depth: Up to this depth the first two networks are measured on all
            samples as well.
        n_conventions: Random orders and signs of components tried.
        committed: Digest of the committed rows to show and judge; empty for none.
    """

    dataset: str = "mnist5k"
    width: int = 10
    depths: tuple[int, ...] = (2, 4, 8, 16, 24)
    predicted_depths: tuple[int, ...] = (2, 4, 8, 16, 24, 32, 48, 64, 96)
    measured_depth: int = 16
    samples_depth: int = 4
    n_conventions: int = 2000
    committed: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        odd = [d for d in (*self.depths, *self.predicted_depths) if d % 2]
        if odd or len(self.depths) < 3:
            raise ConfigError(
                f"depths {self.depths}: growth wants at least three, and 2-shortcut "
                "networks want even ones"
            )


SMOKE = Config(
    n_seeds=2,
    dataset="digits",
    depths=(2, 4, 8),
    predicted_depths=(2, 4, 8, 16),
    samples_depth=2,
    n_conventions=50,
)
QUICK = Config(n_seeds=6, committed=RUN.digest())
PAPER = Config(
    n_seeds=10,
    dataset="mnist",
    depths=(2, 4, 8, 16, 24, 32, 48, 64, 96),
    measured_depth=32,
)


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a network, the deepest first, and one for the conventions."""
    found = [
        {"kind": kind, "depth": depth, "trial": seed}
        for depth in sorted(config.depths, reverse=True)
        for kind in KINDS
        for seed in config.seeds
    ]
    conventions = {"kind": "conventions", "depth": 2, "trial": config.seed}
    return [*found, conventions, *RUN.cells(config)]


def predict(config: Config) -> Rows:
    """Closed forms at zero weights, for 1- and 2-shortcut networks."""
    x, y = whitened(config.dataset, config.width)
    rows: list[Row] = []
    for kind, n in (("one_shortcut", 1), ("two_shortcut", 2)):
        for depth in config.predicted_depths:
            plan = Blueprint(width=config.width, depth=depth, shortcut=n)
            found = conditioning_at_zero(plan, x, y)
            labels = {"kind": kind, "depth": depth}
            for name in ("ratio", "largest", "small", "index"):
                value = float(getattr(found, name))
                error = 1e-13 * abs(value)  # of the bisection, or of an SVD
                row = {"quantity": name, **labels, "value": value, "error": error}
                rows.append(row)
    return Rows(rows + _toeplitz(config, x, y))


def _toeplitz(config: Config, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """Numbers of the growth argument for n = 1."""
    plan = Blueprint(width=config.width, depth=1, shortcut=1)
    a, b = unit_blocks(plan, x, y)
    k = a - b
    values, vectors = np.linalg.eigh(b + (k + k.T) / 2)
    # A vector that differs in sign between two units is moved by an amount that does
    # not depend on the number of units: a ceiling on the smallest magnitude.
    moved = (
        np.linalg.norm(k @ vectors, axis=0) ** 2
        + np.linalg.norm(k.T @ vectors, axis=0) ** 2
    )
    ceiling = np.sqrt(moved.min() / 2)
    found = {
        "slope": values[-1],
        "ceiling": ceiling,
        "block_norm": np.linalg.norm(a, 2),
    }
    return [
        {"quantity": name, "value": float(v), "error": EPS * len(k) * float(v)}
        for name, v in found.items()
    ]


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one network's initial Hessian; or fetch committed rows."""
    if "source" in cell:
        return RUN.rows()
    x, y = whitened(config.dataset, config.width)
    if cell["kind"] == "conventions":
        return Rows(_conventions(config, x, y))
    plan = Blueprint(width=config.width, depth=cell["depth"], **KINDS[cell["kind"]])
    network = networks.build(plan, seed=cell["trial"], device=config.device)
    weights = networks.get_weights(network)
    matrix = linear_hessian(plan, weights, moments(x, y))
    rows: list[Row] = []
    if cell["depth"] <= config.measured_depth:
        few = equivalent_samples(moments(x, y))
        found, reading = measured_hessian(network, *few, matrix_bytes=MEASURED_BYTES)
        rows.append(_meeting("moments_gap", matrix, found, reading))
    else:
        reading = _from_moments(matrix)
    spectrum = instruments.spectrum_of(reading)
    rows += _readings(spectrum)
    if cell["depth"] <= config.samples_depth and cell["trial"] in config.seeds[:2]:
        found, reading = measured_hessian(network, x, y)
        rows.append(_meeting("samples_gap", matrix, found, reading))
    if cell["kind"] == "orthogonal" and cell["depth"] <= 8:
        rows.append(_rotated(plan, weights, spectrum.eigenvalues[::-1], x, y))
    return Rows(rows)


def _from_moments(matrix: np.ndarray) -> Any:
    """Present a Hessian from second moments as a reading of its own method."""
    return instruments.DenseHessian(
        matrix=matrix,
        matrix_error=EPS * float(np.abs(matrix).max()),
        asymmetry=EPS,
        loss=float("nan"),
        gradient=np.zeros(0),
        status=Status.EXACT,
        norm_mode=NormMode.EVAL,
        method="second moments",
    )


def _readings(spectrum: Any) -> list[Row]:
    """Return condition number and index with errors and circumstances."""
    kept = ("ratio", "largest", "small", "index")
    rows = [*spectrum.condition().rows(), *spectrum.index().rows()]
    # The network's seed is the cell's trial; times would differ from run to run.
    dropped = ("seed", "cpu_s", "passes")
    return [
        {key: value for key, value in row.items() if key not in dropped}
        for row in rows
        if row["quantity"] in kept
    ]


def _meeting(name: str, matrix: np.ndarray, found: np.ndarray, reading: Any) -> Row:
    """Say how far the Hessian from moments is from a measured one."""
    return {
        "quantity": name,
        "value": gap(matrix, found, float(np.abs(found).max())),
        "error": reading.asymmetry + EPS * len(found),
        "norm_mode": str(reading.norm_mode),
        "method": reading.method,
    }


def _rotated(
    plan: Blueprint,
    weights: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
) -> Row:
    """Compare with a 1-shortcut network at zero, labels turned by the whole map."""
    whole = np.eye(plan.width)
    for w in weights:
        whole = w @ whole
    twin = Blueprint(width=plan.width, depth=plan.depth, shortcut=1)
    other = eigenvalues_at_zero(twin, x, y @ whole)
    straight = eigenvalues_at_zero(twin, x, y)
    scale = float(np.abs(values).max())
    return {
        "quantity": "rotated_gap",
        "value": float(np.abs(values - other).max()) / scale,
        "error": EPS * len(values),
        "unrotated": float(np.abs(values - straight).max()) / scale,
    }


def _conventions(config: Config, x: np.ndarray, y: np.ndarray) -> list[Row]:
    """How much of the number is a choice of percentile, of signs and of orders."""
    plan = Blueprint(width=config.width, depth=2)
    values = eigenvalues_at_zero(plan, x, y)
    rows: list[Row] = [
        {
            "quantity": "percentile",
            "method": method,
            "value": condition_of(values, interpolation=method).ratio,
            "error": condition_of(values, interpolation=method).error,
        }
        for method in ("linear", "lower", "higher")
    ]
    rng = stream(config.seed, "conventions")
    data, d = moments(x, y), config.width
    found = []
    for _ in range(config.n_conventions):
        turn = np.eye(d)[rng.permutation(d)] * rng.choice([-1.0, 1.0], size=d)
        classes = np.eye(d)[rng.permutation(d)]
        single = np.linalg.svd(np.eye(d) - classes @ data.yx @ turn, compute_uv=False)
        found.append(single[0] / single[-1])
    for name, value in (("least", min(found)), ("most", max(found))):
        rows.append(
            {
                "quantity": f"convention_{name}",
                "value": float(value),
                "error": EPS * d * float(value) ** 2,
            }
        )
    return rows


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Closed form at zero beside the mean over networks at small weights."""
    rows: list[Row] = []
    ratios = own(measured).where(quantity="ratio")
    for kind in ("two_shortcut", "one_shortcut"):
        for depth in ratios.levels("depth"):
            found = estimate(ratios.where(kind=kind, depth=depth).values())
            rows.append(
                {
                    "label": f"ratio, {kind.replace('_', '-')}, depth {depth}",
                    "predicted": predicted.value(
                        quantity="ratio", kind=kind, depth=depth
                    ),
                    "measured": found.mean,
                    "error": found.stderr,
                }
            )
    return rows


_DRAWING = Drawing(
    "condition",
    "Condition number of the initial Hessian against depth. Points: geometric "
    "mean over networks, bands one standard deviation of the logarithm. "
    "Dashed: closed form at zero weights. Hollow: below the rounding of the "
    "eigenvalues, so a lower bound.",
    initial_condition_figure.draw,
)


STUDY = Study(
    title="Figure 4: condition numbers at initialisation against depth",
    summary=(
        "How badly conditioned is a linear network before the first step? The "
        "measure is $|\\lambda|_{\\max}/|\\lambda|_{(0.1)}$ of the Hessian of the "
        "square loss on whitened digits. For 2-shortcut networks theory says it is a "
        "property of the data alone; for 1-shortcut and orthogonal networks it grows "
        "in proportion to depth; for Xavier networks it grows exponentially, since "
        "the singular values of a product of random matrices spread at a constant "
        "rate a layer. Networks are built and their Hessians measured by double "
        "backward, on twenty samples that have the second moments of all: to a linear "
        "network they are the same data. The deepest are computed from those moments."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=tuple(map(judged, initial_condition_claims.CLAIMS)),
    datasets=lambda config: (config.dataset,),
    drawings=(
        drawn(_DRAWING),
        drawn_own(
            _DRAWING, "condition_here", "The same, from the networks of this run."
        ),
    ),
    committed=Committed(RUN.of_cell, ("quantity", "method")),
    departures=(
        "The paper does not give depths: even numbers up to 96 are used; beyond depth "
        "16 (32 at the paper scale) the Hessian is computed from second moments, which "
        "gives the same matrix in less memory.",
        "Means are of the logarithm, since ratios of Xavier networks spread over "
        "decades within one depth.",
        "Signs and order of the principal components are fixed, which the paper leaves "
        "open; see the erratum on conventions.",
        "At the quick scale verdicts rest on a committed run at paper scale (60,000 "
        "digits, 10 networks a depth, depths up to 96); the run itself has 6 networks "
        "a depth up to 24, on 5,000 digits.",
    ),
)
