"""The result of a measurement of neural collapse."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from theodolite.core import (
    Dims,
    Reading,
    Scalar,
    headline,
    metadata_line,
    quantity_line,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Collapse(Reading):
    r"""How far the features of a classifier have collapsed onto their class means.

    $\mu_c$ are class means, $a_c = \mu_c - \mu$ the centred means, $w_c$ the
    rows of the head; $\Sigma_W$ is the within-class covariance over samples, $\Sigma_B$
    that of the class means. In complete collapse all numbers are 0. Numbers that need a
    head are NaN for features that enter none. With two classes centred at their middle,
    the ``nc2`` numbers of the means vanish for all features and test nothing.

    Attributes:
        nc1_variability: $\operatorname{tr}(\Sigma_W\Sigma_B^\dagger)/C$.
        nc1_cdnv: Mean over pairs of $(v_i + v_j)/(2\|\mu_i-\mu_j\|^2)$, $v$ the
            variance of a class; infinite where two means coincide.
        nc1_noise: $\operatorname{tr}\Sigma_W/\operatorname{tr}\Sigma_B$.
        nc2_mean_norms: Standard deviation of $\|a_c\|$ over its mean.
        nc2_mean_angles: Standard deviation of the cosines of pairs of $a_c$.
        nc2_mean_gap: Mean of $|\cos + 1/(C-1)|$ over pairs.
        nc2_mean_simplex: Distance of the Gram matrix of the $a_c$ from that of a
            simplex, each of norm 1.
        nc2_head_norms: As ``nc2_mean_norms``, for the $w_c$; so are the next three.
        nc2_head_angles: See above.
        nc2_head_gap: See above.
        nc2_head_simplex: See above.
        nc3_duality: $\|W/\|W\| - A/\|A\|\|^2$, Frobenius norms.
        nc3_simplex: Distance of $WA^\top$ from the simplex, each of norm 1.
        nc3_alignment: Mean of $1 - \cos(w_c, a_c)$.
        nc4_disagreement: Share of samples for which the nearest class mean and the
            classifier decide differently.
        nc5_outside: Mean of $|\cos(\mu_c, \mu_{\mathrm{out}})|$, with the mean of
            features of other data; NaN without any.
        energy: Mean of $-\ln$ of the distance of pairs of unit $a_c$, minus that of a
            simplex, which is the minimum if $C \le$ width $+ 1$.
        nearest_accuracy: Share of samples nearest to the mean of their class.
        accuracy: Share of samples that the classifier predicts correctly.
        class_weight: Samples of each class, or the sum of their weights.
        class_variance: Mean squared distance to the class mean.
        class_distance: $\|a_c\|$.
        plane: Class means on a plane, where a simplex is a regular polygon of radius 1.
        head_plane: The head's rows on the same plane.
        cosines: Share of pairs of $a_c$ with a cosine in each of equal bins of [-1, 1].
        classes: Labels of the classes with samples, in order.
        samples: Number of samples read.
        width: Length of a feature.
        layer: Name of the layer of the features.
    """

    nc1_variability: Scalar
    nc1_variability_error: Scalar
    nc1_cdnv: Scalar
    nc1_cdnv_error: Scalar
    nc1_noise: Scalar
    nc1_noise_error: Scalar
    nc2_mean_norms: Annotated[float, Dims(error="mean_shape_error")]
    nc2_mean_angles: Annotated[float, Dims(error="mean_shape_error")]
    nc2_mean_gap: Annotated[float, Dims(error="mean_shape_error")]
    nc2_mean_simplex: Annotated[float, Dims(error="mean_shape_error")]
    nc2_head_norms: Annotated[float, Dims(error="head_shape_error")]
    nc2_head_angles: Annotated[float, Dims(error="head_shape_error")]
    nc2_head_gap: Annotated[float, Dims(error="head_shape_error")]
    nc2_head_simplex: Annotated[float, Dims(error="head_shape_error")]
    nc3_duality: Annotated[float, Dims(error="mean_shape_error")]
    nc3_simplex: Annotated[float, Dims(error="mean_shape_error")]
    nc3_alignment: Annotated[float, Dims(error="mean_shape_error")]
    mean_shape_error: Scalar
    head_shape_error: Scalar
    nc4_disagreement: Scalar
    nc4_disagreement_error: Scalar
    nc5_outside: Annotated[float, Dims(error="mean_shape_error")]
    energy: Scalar
    energy_error: Scalar
    nearest_accuracy: Scalar
    nearest_accuracy_error: Scalar
    accuracy: Scalar
    accuracy_error: Scalar
    class_weight: Annotated[np.ndarray, Dims("class")]
    class_variance: Annotated[np.ndarray, Dims("class")]
    class_variance_error: Scalar
    class_distance: Annotated[np.ndarray, Dims("class")]
    class_distance_error: Scalar
    plane: Annotated[np.ndarray, Dims("class", "axis", error="mean_shape_error")]
    head_plane: Annotated[np.ndarray, Dims("class", "axis", error="mean_shape_error")]
    cosines: Annotated[np.ndarray, Dims("bin")]
    classes: np.ndarray
    samples: int
    width: int
    layer: str

    def coordinates(self) -> dict[str, list[Any]]:
        """Label classes by their numbers, bins by their midpoints."""
        bins = len(self.cosines)
        middles = (np.arange(bins) + 0.5) * 2 / bins - 1 if bins else np.zeros(0)
        return {
            "class": self.classes.tolist(),
            "axis": ["x", "y"],
            "bin": middles.tolist(),
        }

    def summary_lines(self) -> list[str]:
        """Return the numbers; quantities per class are only named."""
        errors = set(self.error_of.values())
        names = [name for name, dims in self.dims.items() if name not in errors]
        scalars = [name for name in names if not self.dims[name]]
        absent = [name for name in scalars if np.isnan(getattr(self, name))]
        of = f" of layer {self.layer!r}" if self.layer else ""
        return [
            headline(self),
            *[
                f"  {name:<17}  {quantity_line(self, name)}"
                for name in scalars
                if name not in absent
            ],
            *([f"  not there: {', '.join(absent)}"] if absent else []),
            f"  and {', '.join(name for name in names if self.dims[name])}",
            f"  {self.samples:,} samples of {len(self.classes):,} classes, "
            f"{self.width:,} features{of}",
            metadata_line(self),
        ]
