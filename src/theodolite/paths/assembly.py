"""A reading made of what chunks of samples gave."""

import math
from collections.abc import Sequence

import numpy as np

from theodolite.core import MeasurementError, Status, Stopwatch
from theodolite.paths.collected import Collected, Plan
from theodolite.paths.energies import Energies
from theodolite.paths.frozen_model import Subject
from theodolite.paths.law import Fit, fit, scale_from_gains
from theodolite.paths.reading import PathEnsemble

# How far coefficients may be from the whole, relative to it, to count as exact.
_EXACT = 1e-10
# And beyond the rounding of a sum, as a multiple of its last digit, by choice.
_ROUNDING = 1e4


def reading_of(
    found: Collected, subject: Subject, plan: Plan, *, watch: Stopwatch
) -> PathEnsemble:
    """Return the reading of what chunks gave."""
    energies = [part.energies() for part in found.parts]
    status = _status(found, energies)
    logs = np.array([math.log(n) if n else -math.inf for n in found.counts])
    length = max(len(logs), *(len(e.energy) for e in energies))
    logs = np.pad(logs, (0, length - len(logs)), constant_values=-math.inf)
    fits = [fit(_padded(e.share, length), logs) for e in energies]
    gains = [math.sqrt(a / b) if b else math.inf for a, b in found.gains.values()]
    words = ["float64 twin" if subject.twin else "direct"]
    words += [f"linearised {', '.join(found.linearised)}"] if found.linearised else []

    def table(name: str) -> np.ndarray:
        return np.stack([_padded(getattr(e, name), length) for e in energies])

    def column(name: str) -> np.ndarray:
        return np.array([getattr(e, name) for e in energies])

    return PathEnsemble(
        energy=table("energy"),
        energy_error=table("energy_error"),
        share=table("share"),
        share_error=table("share_error"),
        alignment=table("alignment"),
        alignment_error=table("alignment_error"),
        law=np.stack([f.shares for f in fits]),
        effective_depth=column("depth"),
        effective_depth_error=column("depth_error"),
        spread=column("spread"),
        spread_error=column("spread_error"),
        beta=np.array([f.beta for f in fits]),
        beta_error=np.array(
            [_beta_error(f, e) for f, e in zip(fits, energies, strict=True)]
        ),
        divergence=np.array([f.divergence for f in fits]),
        distance=np.array([f.distance for f in fits]),
        residual=np.array([part.residual for part in found.parts]),
        gradient_gap=found.gap,
        gain=np.array(gains),
        predicted_beta=scale_from_gains(gains),
        log_counts=logs,
        places=tuple(branch.module for branch in found.branches),
        counted=plan.counted,
        by=plan.by,
        biases=plan.biases,
        linearised=found.linearised,
        samples=found.samples,
        status=status,
        norm_mode=subject.norm_mode,
        cost=watch.read(passes=found.chunks * (len(found.parts) - 1)),
        method="; ".join(words),
    )


def _status(found: Collected, energies: Sequence[Energies]) -> Status:
    finite = all(np.isfinite(e.energy).all() and e.energy.sum() > 0 for e in energies)
    if not finite:
        return Status.NONFINITE
    worst = Status.EXACT
    for part in found.parts:
        if part.residual <= _EXACT:
            continue
        if part.residual > _ROUNDING * found.eps * max(part.cancelled, 1.0):
            raise MeasurementError(
                f"the paths add up to the output within {part.residual:.2g} of it "
                "only, so samples act on one another or passes differ: use 'eval' "
                "mode, and a model that draws nothing at random"
            )
        worst = Status.ROUNDING
    return worst


def _beta_error(fit: Fit, energies: Energies) -> float:
    r"""Return the error of $\beta$ from that of the mean $\mu$.

    In the family $d\mu / d\log\beta = 2\sigma^2$.
    """
    degrees = np.arange(len(fit.shares))
    variance = float(fit.shares @ (degrees - fit.shares @ degrees) ** 2)
    if not variance or not math.isfinite(fit.beta):
        return math.inf
    return fit.beta * energies.depth_error / (2 * variance)


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    return np.pad(values, (0, length - len(values)))
