r"""Largest Hessian eigenvalues during training.

References:
    Cohen et al. (2021), Gradient descent on neural networks typically occurs at the
    edge of stability, ICLR: full-batch sharpness rises to $2/\eta$ and stays there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import (
    ConfigError,
    Cost,
    Dims,
    Reading,
    Scalar,
    Status,
    as_integer,
    derive,
)

from ..model.process_state import measuring
from ..operators.loss_hessian import Hessian
from ..passes.batches import Batches
from ..passes.forecast import as_bytes
from ..passes.problem import LossSettings, Model, Problem, refuse_unknown, with_settings
from ..solvers.lanczos import Placement
from .extremes import CHANCE, ExtremeEigenvalues, extreme_eigenvalues, outdated
from .model_instruments import check_count, problem_for, refuse_settings


@dataclass(frozen=True, kw_only=True, eq=False)
class SharpnessAlong(Reading):
    r"""Largest eigenvalues of the loss Hessian at some steps of training.

    ``errors`` is certified: an eigenvalue lies within it. ``sharp_errors``, residual²
    over gap, is compared with the tolerance: the k largest lie within it. Every step
    searches a new random direction until a larger eigenvalue would have been found,
    except with probability ``chance`` per step. Both include the rounding of the
    model's graph. It is measured at the first step, and again when the largest
    eigenvalue, or the norm of any weight tensor, has grown 1.25 times or fallen below
    0.8 times.

    Attributes:
        steps: Measured steps.
        eigenvalues: The k largest, descending, one row per step.
        residuals: $\|Hv - \lambda v\| / |\lambda|$ of each.
        errors: Certified bound on each.
        sharp_errors: Bound on each, which fails with probability ``chance``.
        chance: Probability that a step missed a larger eigenvalue.
        products: Products that each step took.
        statuses: Status of each step.
    """

    steps: np.ndarray
    eigenvalues: Annotated[np.ndarray, Dims("step", "rank", error="errors")]
    residuals: Annotated[np.ndarray, Dims("step", "rank")]
    errors: Annotated[np.ndarray, Dims("step", "rank")]
    sharp_errors: Annotated[np.ndarray, Dims("step", "rank")]
    products: Annotated[np.ndarray, Dims("step")]
    statuses: tuple[Status, ...]
    chance: Scalar

    def coordinates(self) -> dict[str, list[Any]]:
        """Label rows by their steps."""
        return {**super().coordinates(), "step": self.steps.tolist()}


class SharpnessProbe:
    """Records sharpness; call it with the step number inside the training loop.

    Each measurement starts from the eigenvectors of the last one, and then searches
    their complement from a random direction, so that a new largest eigenvalue is
    detected as well. Use :func:`sharpness_along` to make one.

    Args:
        operator: Operator of the model that is trained.
        every: Steps from one measurement to the next.
        seed: Seed of the random directions.
        chance: Probability that a step misses a larger eigenvalue.
        search: Other settings of :func:`extreme_eigenvalues`.
    """

    def __init__(
        self,
        operator: Hessian,
        *,
        every: int,
        seed: int,
        chance: float = CHANCE,
        **search: Any,
    ) -> None:
        self._operator, self._every = operator, every
        self._search, self._chance = search, chance
        # The rounding error, and the eigenvalue and weights at which it was measured.
        self._graph_error: float | None = None
        self._graph_error_at: float | None = None
        self._weights_at: np.ndarray | None = None
        self._seed, self._start = seed, None
        self._readings: dict[int, ExtremeEigenvalues] = {}

    @measuring()
    def __call__(self, step: int) -> float | None:
        """Measure if the step is due; then return the largest eigenvalue, else None."""
        as_integer("step", step, 0)
        if step % self._every:
            return None
        weights = _sizes(self._operator.model)
        if outdated(self._weights_at, weights):
            self._graph_error = self._graph_error_at = None
        with self._operator:  # frees graphs of old parameters
            reading = extreme_eigenvalues(
                self._operator,
                ends="largest",
                seed=derive(self._seed, "reading", len(self._readings)),
                stop="value",
                vectors=True,
                method="products",
                start=self._start,
                chance=self._chance,
                graph_error=self._graph_error,
                graph_error_at=self._graph_error_at,
                **self._search,
            )
        self._start = self._mixed(reading)
        if reading.status is not Status.NONFINITE:
            self._note_rounding(reading, weights)
        self._readings[int(step)] = reading
        return float(reading.eigenvalues[0])

    def _note_rounding(self, reading: ExtremeEigenvalues, weights: np.ndarray) -> None:
        """Keep the rounding error, if it was measured at this reading."""
        largest = float(np.abs(reading.eigenvalues).max())
        if self._graph_error is None or outdated(self._graph_error_at, largest):
            self._graph_error, self._graph_error_at = reading.graph_error, largest
            self._weights_at = weights

    def reading(self) -> SharpnessAlong:
        """Return what was measured so far."""
        if not self._readings:
            raise ConfigError(
                "no step was measured yet: call the probe with a step that "
                f"{self._every} divides, such as 0"
            )
        steps = sorted(self._readings)
        readings = [self._readings[step] for step in steps]
        return SharpnessAlong(
            steps=np.array(steps),
            eigenvalues=np.stack([r.eigenvalues for r in readings]),
            residuals=np.stack([r.residuals for r in readings]),
            errors=np.stack([r.errors for r in readings]),
            sharp_errors=np.stack([r.sharp_errors for r in readings]),
            products=np.array([r.cost.passes for r in readings]),
            statuses=tuple(r.status for r in readings),
            chance=self._chance,
            status=Status.worst(r.status for r in readings),
            norm_mode=self._operator.norm_mode,
            norm_layers=_both([r.norm_layers for r in readings]),
            seed=self._seed,
            cost=sum((r.cost for r in readings), Cost()),
            method="Lanczos from the last step, and from a random direction beside it",
        )

    def _mixed(self, reading: ExtremeEigenvalues) -> Tensor | None:
        if reading.eigenvectors is None or reading.status is Status.NONFINITE:
            return None
        mixed = torch.from_numpy(reading.eigenvectors.sum(axis=1))
        return mixed.to(dtype=self._operator.torch_dtype, device=self._operator.device)


@with_settings
def sharpness_along(
    model: Model | Problem | Hessian,
    batches: Batches | None = None,
    *,
    k: int = 1,
    every: int = 1,
    tol: float = 1e-3,
    max_matvecs: int = 100,
    seed: int | None = None,
    chance: float = CHANCE,
    basis_bytes: int = 4 * 2**30,
    basis: Placement = "auto",
    **settings: Unpack[LossSettings],
) -> SharpnessProbe:
    r"""Return a recorder of the largest Hessian eigenvalues during training.

    The model may be trained between calls. Each call measures its present state and
    leaves it unchanged. The batches are read once, here.

    Args:
        model: Any module; or a :class:`Problem` or a :class:`Hessian`, without
            ``batches``.
        batches: The module's data.
        k: How many eigenvalues.
        every: Steps from one measurement to the next.
        tol: Wanted relative error of the eigenvalues, residual² over gap; ``errors``
            are residuals, and larger.
        max_matvecs: Budget of products per step.
        seed: Seed of the random directions; that of the :class:`Problem` by default.
        chance: Probability that a step misses an eigenvalue that is larger by more than
            ``sharp_errors``; a smaller one takes a few more products.
        basis_bytes: Memory limit of the basis, which is restarted to stay below it.
        basis: Kept on "device", "host", "shared" over a team, or "auto" (fastest).
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``.

    Example:
        >>> from theodolite.instruments import HalfSquareLoss
        >>> layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
        >>> probe = sharpness_along(
        ...     layer, (x, x[:, :1]), loss=HalfSquareLoss(), norm_mode="eval", every=2
        ... )
        >>> sharpness = [probe(step) for step in range(4)]
        >>> probe.reading().steps, probe.reading().eigenvalues.round(6)
        (array([0, 2]), array([[2.],
               [2.]]))
    """
    refuse_unknown(sharpness_along, settings)
    check_count("every", every)
    check_count("k", k)
    basis_bytes = as_bytes("basis_bytes", basis_bytes)
    if isinstance(model, Hessian):
        refuse_settings("sharpness_along", batches, settings)
        operator = model
    else:
        operator = Hessian(problem_for(model, batches, settings, seed))
    search = {"k": k, "tol": tol, "max_matvecs": max_matvecs}
    search |= {"basis_bytes": basis_bytes, "basis": basis}
    seed = operator.seed if seed is None else seed
    return SharpnessProbe(operator, every=every, seed=seed, chance=chance, **search)


def _both(records: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, Any]:
    """Merge the norm layers of all steps; one that changed mode is in both modes."""
    return {
        mode: tuple(dict.fromkeys(name for one in records for name in one[mode]))
        for mode in records[0]
    }


# A tensor with numbers below this share of the others' counts as that large, by
# choice: biases that grow from zero do not change rounding at first.
_SMALL = 0.1


def _sizes(model: nn.Module) -> np.ndarray:
    """Return the norm of each weight tensor, with which rounding errors grow.

    A norm over all tensors would show the largest one only.
    """
    held = [p.detach() for p in model.parameters() if p.is_floating_point()]
    norms = np.array([float(p.norm()) for p in held])
    counts = np.array([p.numel() for p in held])
    typical = np.sqrt((norms**2).sum() / max(counts.sum(), 1))
    return np.maximum(norms, _SMALL * typical * np.sqrt(counts))
