r"""Class means about their centre, and the directions in which they differ."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from theodolite.core import MeasurementError

Centre = Literal["classes", "samples"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Between:
    r"""The between-class covariance $\Sigma_B = \frac1C \sum_c a_c a_c^\top$.

    Attributes:
        count: Weight of each class.
        means: Class means, rows in float64.
        centred: $a_c$, the means less their centre.
        basis: Orthonormal rows $q_i$ that span the $a_c$.
        eigenvalues: $\lambda_i > 0$ of $\Sigma_B$ along them.
    """

    count: Tensor
    means: Tensor
    centred: Tensor
    basis: Tensor
    eigenvalues: Tensor

    @classmethod
    def of(cls, means: Tensor, count: Tensor, centre: Centre) -> "Between":
        """Take the means apart; classes all count the same in the covariance."""
        shares = count / count.sum()
        middle = means.mean(0) if centre == "classes" else shares @ means
        centred = means - middle
        rows = centred / len(means) ** 0.5
        small = min(rows.shape) == len(rows)
        values, vectors = torch.linalg.eigh(rows @ rows.T if small else rows.T @ rows)
        # What rounding makes of a zero, of this matrix and of the means themselves.
        eps = torch.finfo(torch.float64).eps
        noise = max(rows.shape) * eps * float(values[-1])
        noise += (8 * eps * float(means.norm(dim=1).max())) ** 2
        kept = values > noise
        if not bool(kept.any()):
            raise MeasurementError(
                f"the means of {len(means)} classes coincide, so the features do not "
                "vary between classes and collapse has no scale: check for features of "
                "zero variance, such as dead units, or choose another layer"
            )
        values, vectors = values[kept], vectors[:, kept]
        basis = (vectors.T @ rows) / values.sqrt()[:, None] if small else vectors.T
        return cls(
            count=count,
            means=means,
            centred=centred,
            basis=basis.contiguous(),
            eigenvalues=values,
        )

    @property
    def coordinates(self) -> Tensor:
        """Centred means along the basis, a row a class."""
        return self.centred @ self.basis.T

    @property
    def narrowest(self) -> float:
        r"""$\sqrt{\lambda_{\min}}$: how far means differ in the direction of least."""
        return float(self.eigenvalues.min().sqrt())

    def ratio(self, along: Tensor) -> float:
        r"""Return $\operatorname{tr}(\Sigma_W\Sigma_B^\dagger)/C$.

        Args:
            along: Within-class sums of squares along the basis.
        """
        within = along / self.count.sum()
        return float((within / self.eigenvalues).sum()) / len(self.means)
