"""Predictions from the captions' settings, before training."""

from theodolite import data
from theodolite.core import Row, Rows
from theodolite.theory import rectified_sharpness

from .config import CONDITIONS, DEPTH, MOMENTUM, Config, runs


def predict(config: Config) -> Rows:
    r"""Return $\rho$ at the start, and whether the last layer is stable there.

    Stability is $\eta\lambda_{\max}/2(1 + \mu)$ of normalised networks, of independent
    units: above 1 descent diverges.
    """
    rows: list[Row] = []
    every = (run for family in config.families for run in runs(family))
    for condition, start in dict.fromkeys(every):
        value = start**DEPTH
        rows.append(
            {"quantity": "rho_start", "condition": condition, "start": start,
             "value": value, "error": 1e-12 * value}
        )  # fmt: skip
    shape = _shape(config.dataset)
    for family in config.families:
        normalised = [c for c in dict(runs(family)) if CONDITIONS[c].norm == "batch"]
        for condition in normalised:
            plan = config.blueprint(family, condition, 1.0, shape)
            pull = CONDITIONS[condition].rate * rectified_sharpness(plan.features)
            value = pull / (2 * (1 + MOMENTUM))
            rows.append(
                {"quantity": "instability", "family": family, "condition": condition,
                 "value": value, "error": 1e-12 * value}
            )  # fmt: skip
    return Rows(rows)


def _shape(dataset: str) -> tuple[int, ...]:
    """Return the shape of an image, without data where they are known."""
    if dataset == "cifar10":
        return 3, 32, 32
    shape = data.load(dataset).images.shape[1:]
    return (1, *shape) if len(shape) == 2 else (shape[2], *shape[:2])
