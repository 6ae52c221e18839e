r"""Means and moments of classes, and the directions in which the means differ.

A batch is summarised by the count, mean and variance of each class and the pooled
within-class scatter $S = \sum_n w_n (h_n - \mu_{c(n)})(h_n - \mu_{c(n)})^\top$, all
about its own class means and in float64. Two summaries merge by the difference of their
class means, which under collapse is as small as the deviations themselves, so nothing
cancels.

References:
    Chan, Golub and LeVeque (1979), Updating formulae and a pairwise algorithm for
    computing sample variances.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from theodolite.core import MeasurementError


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassMoments:
    """Moments of the features of each class, kept in place of the features.

    Attributes:
        count: Weight of each class.
        mean: Its mean, one row per class; 0 for a class without samples.
        square: Its sum of squared distances to the mean.
        scatter: Pooled within-class scatter, width by width.
    """

    count: Tensor
    mean: Tensor
    square: Tensor
    scatter: Tensor

    @classmethod
    def of(
        cls, features: Tensor, labels: Tensor, weights: Tensor, classes: int
    ) -> "ClassMoments":
        """Return the moments of a batch, from features, class indices and weights."""
        h = features.double()
        count = torch.zeros(classes, dtype=h.dtype, device=h.device)
        count.index_add_(0, labels, weights)
        sums = torch.zeros(classes, h.shape[1], dtype=h.dtype, device=h.device)
        # Relative to one sample of each class, so that equal samples have variance 0.
        anchor = torch.zeros_like(sums).index_copy_(0, labels, h)
        apart = h - anchor[labels]
        sums.index_add_(0, labels, apart * weights[:, None])
        shift = sums / count.clamp_min(torch.finfo(h.dtype).tiny)[:, None]
        apart -= shift[labels]
        apart *= weights.sqrt()[:, None]
        square = torch.zeros_like(count)
        square.index_add_(0, labels, apart.square().sum(1))
        mean = anchor + shift
        return cls(count=count, mean=mean, square=square, scatter=apart.T @ apart)

    def grown(self, classes: int) -> "ClassMoments":
        """Return the same moments, with zeros for additional classes."""
        more = classes - len(self.count)
        if more <= 0:
            return self
        return ClassMoments(
            count=functional.pad(self.count, (0, more)),
            mean=functional.pad(self.mean, (0, 0, 0, more)),
            square=functional.pad(self.square, (0, more)),
            scatter=self.scatter,
        )

    def merge(self, other: "ClassMoments") -> "ClassMoments":
        """Return the moments of both."""
        classes = max(len(self.count), len(other.count))
        one, two = self.grown(classes), other.grown(classes)
        count = one.count + two.count
        share = two.count / count.clamp_min(torch.finfo(count.dtype).tiny)
        gap = torch.where((one.count > 0)[:, None], two.mean - one.mean, two.mean)
        # For a class that occurs on one side only, the means have no difference.
        between = one.count * share
        scaled = gap * between.sqrt()[:, None]
        return ClassMoments(
            count=count,
            mean=one.mean + gap * share[:, None],
            square=one.square + two.square + scaled.square().sum(1),
            scatter=one.scatter + two.scatter + scaled.T @ scaled,
        )


Centre = Literal["classes", "samples"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BetweenClasses:
    r"""The between-class covariance $\Sigma_B = \frac1C \sum_c a_c a_c^\top$.

    Attributes:
        count: Weight of each class.
        means: Class means, rows in float64.
        centred: $a_c$, the means minus their centre.
        basis: Orthonormal rows $q_i$ that span the $a_c$.
        eigenvalues: $\lambda_i > 0$ of $\Sigma_B$ along them.
    """

    count: Tensor
    means: Tensor
    centred: Tensor
    basis: Tensor
    eigenvalues: Tensor

    @classmethod
    def of(cls, means: Tensor, count: Tensor, centre: Centre) -> "BetweenClasses":
        """Return centred means and a basis of their span; classes weigh the same."""
        shares = count / count.sum()
        middle = means.mean(0) if centre == "classes" else shares @ means
        centred = means - middle
        rows = centred / len(means) ** 0.5
        small = min(rows.shape) == len(rows)
        values, vectors = torch.linalg.eigh(rows @ rows.T if small else rows.T @ rows)
        # Below this, an eigenvalue is rounding of this matrix or of the means.
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
        """Centred means along the basis, one row per class."""
        return self.centred @ self.basis.T

    @property
    def narrowest(self) -> float:
        r"""$\sqrt{\lambda_{\min}}$: spread of means along the narrowest direction."""
        return float(self.eigenvalues.min().sqrt())

    def ratio(self, along: Tensor) -> float:
        r"""Return $\operatorname{tr}(\Sigma_W\Sigma_B^\dagger)/C$.

        Args:
            along: Within-class sums of squares along the basis.
        """
        within = along / self.count.sum()
        return float((within / self.eigenvalues).sum()) / len(self.means)
