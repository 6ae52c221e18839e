"""The result of :func:`path_ensemble`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from theodolite.core import Reading, unknown_name

PARTS = ("output", "gradient")


@dataclass(frozen=True, kw_only=True, eq=False)
class PathEnsemble(Reading):
    r"""Energy of the paths of a residual network, by how many branches they take.

    The first axis of most quantities is the part that paths contribute to: the output,
    and, where a loss was given, its gradient. With ``counted`` equal to ``"layers"``
    lengths count layers of weights instead of branches.

    Attributes:
        energy: Mean over samples and outputs of the squared sum over paths.
        share: Share of all energy.
        alignment: Inner product of that sum with the sum over all paths, divided by
            the square of the latter; adds up to 1.
        effective_depth: Mean number of branches under the shares.
        spread: Standard deviation of that number.
        beta: $\beta$ of the law $N_r^2\beta^{2r}$ that fits best; see
            :mod:`theodolite.paths.energies`.
        law: Shares under that law.
        divergence: Kullback–Leibler divergence from the law to the shares, in nats.
        distance: Half the sum of absolute differences of shares and law.
        residual: Relative distance of the coefficients' sum from the whole: for
            the output, the true output in the norm mode; for the gradient, that of
            the frozen network.
        gradient_gap: Relative difference between the frozen network's gradient by the
            inputs and the true one, which also goes through statistics of norms; no
            entry without a loss, or where inputs are no real numbers.
        gain: Norm of each branch over that of the skip it is added to.
        predicted_beta: $\beta$ that follows from these gains if paths add coherently.
        log_counts: Logarithm of the number of paths of each length.
        places: Module of each branch's addition.
        counted: What lengths count.
        by: Input of the gradient: ``"block"`` (input of the first residual
            block) or ``"input"``.
        biases: Whether the output's paths include those that biases begin.
        linearised: Functions that were frozen although they are not piecewise linear.
        samples: Number of samples.

    Errors are standard errors over samples, infinite for one sample; those of the fit
    follow from that of the effective depth.
    """

    dims: ClassVar = {
        **dict.fromkeys(
            "energy energy_error share share_error alignment alignment_error "
            "law".split(),
            ("part", "length"),
        ),
        **dict.fromkeys(
            "effective_depth effective_depth_error spread spread_error beta beta_error "
            "divergence distance residual".split(),
            ("part",),
        ),
        "gradient_gap": ("gap",),
        "gain": ("branch",),
        "predicted_beta": (),
        "log_counts": ("length",),
    }
    error_of: ClassVar = {
        name: f"{name}_error"
        for name in "energy share alignment effective_depth spread beta".split()
    }

    energy: np.ndarray
    energy_error: np.ndarray
    share: np.ndarray
    share_error: np.ndarray
    alignment: np.ndarray
    alignment_error: np.ndarray
    law: np.ndarray
    effective_depth: np.ndarray
    effective_depth_error: np.ndarray
    spread: np.ndarray
    spread_error: np.ndarray
    beta: np.ndarray
    beta_error: np.ndarray
    divergence: np.ndarray
    distance: np.ndarray
    residual: np.ndarray
    gradient_gap: np.ndarray
    gain: np.ndarray
    predicted_beta: float
    log_counts: np.ndarray
    places: tuple[str, ...]
    counted: str
    by: str
    biases: bool
    linearised: tuple[str, ...]
    samples: int

    @property
    def parts(self) -> tuple[str, ...]:
        """Parts that paths contribute to: ``"output"``, perhaps ``"gradient"``."""
        return PARTS[: len(self.energy)]

    def of(self, part: str) -> dict[str, Any]:
        """Return the quantities of one part by name, without its axis.

        Args:
            part: ``"output"``, or ``"gradient"`` where a loss was given.
        """
        if part not in self.parts:
            raise unknown_name("part of the ensemble", part, self.parts)
        place = self.parts.index(part)
        named = {n: getattr(self, n) for n, dims in self.dims.items() if "part" in dims}
        return {
            name: value[place] if value.ndim > 1 else float(value[place])
            for name, value in named.items()
        }

    def coordinates(self) -> dict[str, list]:
        """Return parts, lengths from 0 up, and the places of branches."""
        return {
            "part": list(self.parts),
            "length": list(range(self.energy.shape[1])),
            "branch": list(range(len(self.gain))),
            "gap": ["inputs"] * len(self.gradient_gap),
        }

    def summary_lines(self) -> list[str]:
        """Return what ``print`` shows: depth and fit of each part first."""
        first, *rest = Reading.summary_lines(self)
        longest = self.energy.shape[1] - 1
        lines = []
        for part in self.parts:
            held = self.of(part)
            lines.append(
                f"  {part}: effective depth {held['effective_depth']:.4g} of {longest}"
                f" {self.counted}, spread {held['spread']:.3g}, beta "
                f"{held['beta']:.4g} (distance {held['distance']:.2g})"
            )
        if self.linearised:
            lines.append(f"  frozen as if linear: {', '.join(self.linearised)}")
        return [first, *lines, *rest]
