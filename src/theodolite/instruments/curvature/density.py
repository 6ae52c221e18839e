"""Spectral density and distribution of the loss Hessian, with an error band."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Unpack

import numpy as np

from theodolite.core import (
    ConfigError,
    Dims,
    Numbers,
    SampledReading,
    Status,
    Stopwatch,
    as_numbers,
)

from ..model.process_state import expected
from ..passes.batches import Batches
from ..solvers.lanczos import Placement
from ..solvers.quadrature import Band, Quadrature, quadrature_of
from .model_instruments import (
    CurvatureSettings,
    Method,
    Subject,
    check_count,
    check_precision,
    goes_dense,
    measured,
    norms_of,
    symmetric,
)
from .smoothing import Kernel, joint_level, kernel_of, points_of
from .spectra import Spectrum, whole_spectrum


@dataclass(frozen=True, kw_only=True, eq=False)
class SpectralDensity(SampledReading):
    r"""Smoothed density and distribution function of the eigenvalues.

    The density is that of the eigenvalues with normal noise of standard deviation
    ``width`` added, reflected at ``ends``, the lowest and the highest node, so that it
    is zero where no eigenvalue was seen. Bands are simultaneous: each holds at all
    points of the grid at once with confidence ``level``, and errors are half their
    widths. Sampling error comes from inverting a Beta distribution, exact for ``cdf``
    and matched in two moments for the density, at a level per point that is calibrated
    for all points together. Truncation error of Lanczos is bounded for ``cdf``, and for
    the density it is the change in the last quarter of steps. For a dense matrix bands
    show rounding only. For one point's interval, pass a grid of one.

    Attributes:
        grid: Points.
        density: At the points; integrates to 1.
        cdf: Fraction of eigenvalues up to each point, not smoothed.
        nodes: Nodes of the quadrature, one row per probe.
        weights: Their weights; each row sums to 1.
        width: Standard deviation of the kernel.
        ends: Where it is reflected; the density is zero beyond.
        level: Confidence of a band at all points at once.
    """

    precision_of: ClassVar = "cdf error"
    improved_by: ClassVar = "n_probes or steps"

    grid: np.ndarray
    density: Annotated[np.ndarray, Dims("point")]
    density_error: Annotated[np.ndarray, Dims("point")]
    density_low: Annotated[np.ndarray, Dims("point")]
    density_high: Annotated[np.ndarray, Dims("point")]
    cdf: Annotated[np.ndarray, Dims("point")]
    cdf_error: Annotated[np.ndarray, Dims("point")]
    cdf_low: Annotated[np.ndarray, Dims("point")]
    cdf_high: Annotated[np.ndarray, Dims("point")]
    nodes: Annotated[np.ndarray, Dims("probe", "node")]
    weights: Annotated[np.ndarray, Dims("probe", "node")]
    width: float
    level: float
    ends: tuple[float, float] = (0.0, 0.0)

    def smoothed(self, eigenvalues: Numbers) -> np.ndarray:
        """Return the density of known eigenvalues by the same kernel, at the grid.

        Use it to compare a predicted spectrum with ``density``.
        """
        values = as_numbers("eigenvalues", eigenvalues, "rank", error=ConfigError)
        return Kernel(self.width, *self.ends)(self.grid, values).mean(axis=1)

    def coordinates(self) -> dict[str, list[Any]]:
        """Label the points by their abscissae."""
        return {**super().coordinates(), "point": self.grid.tolist()}


@measured
def spectral_density(
    model: Subject,
    batches: Batches | None = None,
    *,
    n_probes: int = 8,
    steps: int = 64,
    tol: float | None = None,
    grid: np.ndarray | int = 256,
    width: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "auto",
    basis_bytes: int = 4 * 2**30,
    basis: Placement = "auto",
    **settings: Unpack[CurvatureSettings],
) -> SpectralDensity:
    """Measure the density of all eigenvalues of the loss Hessian.

    Args:
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data.
        n_probes: Random vectors; sampling error falls with the root of their number.
        steps: Products per vector; resolution grows with them.
        tol: Wanted ``cdf_error``, at most; ``status`` says whether it was reached.
        grid: Points, or how many to place where eigenvalues are.
        width: Standard deviation of the kernel; by default the resolution of the steps,
            outliers left out.
        level: Confidence of each band, at all points at once.
        seed: Seed of the vectors.
        method: "dense", "products", or "auto": dense up to 1000 parameters if
            ``max_matvecs`` is as large.
        basis_bytes: Memory limit of all bases at a time.
        basis: Kept on "device", "host", "shared" over a team, or "auto" (fastest).
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``, and
            ``operator``: ``Hessian``, ``GaussNewton``, ``Fisher`` or
            ``EmpiricalFisher``.

    Example:
        >>> import torch
        >>> from theodolite.instruments import MatrixOperator
        >>> matrix = torch.diag(torch.tensor([0.0, 0.0, 1.0, 2.0]))
        >>> operator = MatrixOperator(matrix, symmetric=True)
        >>> spectral_density(operator, grid=np.array([-0.5, 0.5, 1.5, 2.5])).cdf
        array([0.  , 0.5 , 0.75, 1.  ])
    """
    operator = symmetric(model)
    check_count("n_probes", n_probes)
    check_count("steps", steps, 2)
    check_precision(tol)
    watch, before = Stopwatch(), operator.passes
    exact = goes_dense(operator, method, n_probes * steps)
    expected(operator.shape[1] if exact else n_probes * steps, bounded=not exact)
    if exact:
        rule = rule_of(whole_spectrum(operator))
    else:
        rule = quadrature_of(
            operator,
            n_probes=n_probes,
            steps=steps,
            seed=seed,
            basis_bytes=basis_bytes,
            basis=basis,
        )
    kernel = kernel_of(rule, width, min(steps, operator.shape[1]), exact=exact)
    points = points_of(grid, rule, kernel)
    density, cdf = _bands(rule, points, kernel, level, exact=exact)
    precision = 0.0 if exact else float(cdf.half_width.max(initial=0.0))
    return SpectralDensity(
        grid=points,
        density=density.centre,
        density_error=density.half_width,
        density_low=density.low,
        density_high=density.high,
        cdf=cdf.centre,
        cdf_error=cdf.half_width,
        cdf_low=cdf.low,
        cdf_high=cdf.high,
        nodes=rule.nodes,
        weights=rule.weights,
        width=kernel.width,
        ends=(kernel.low, kernel.high),
        level=level,
        precision=precision,
        tol=tol,
        status=rule.status_at(precision, tol),
        **norms_of(operator),
        seed=None if exact else seed,
        cost=watch.read(passes=operator.passes - before),
        method="dense" if exact else rule.storage.told("stochastic Lanczos quadrature"),
    )


def rule_of(spectrum: Spectrum) -> Quadrature:
    """Return a whole spectrum as one quadrature rule of equal weights."""
    nodes = spectrum.eigenvalues[::-1][None].copy()
    weights = np.full_like(nodes, 1 / nodes.size)
    return Quadrature(
        nodes,
        weights,
        np.zeros_like(nodes),
        nodes,
        weights,
        np.ones(1),
        nodes.size,
        float(np.abs(nodes).max()),
        spectrum.eigenvalue_error,
        Status.EXACT,
    )


def _bands(
    rule: Quadrature, points: np.ndarray, kernel: Kernel, level: float, *, exact: bool
) -> tuple[Band, Band]:
    if not rule.nodes.size:  # the first product failed
        nothing = np.full(len(points), np.nan)
        return Band(nothing, nothing, nothing), Band(nothing, nothing, nothing)
    if exact:
        return _exact(rule, points, kernel(points, rule.nodes))
    below = np.full(len(points), -np.inf)
    nodes, weights = rule.pooled
    count = len(rule.nodes) * rule.size
    slack = kernel.slack
    curve = joint_level(kernel(points, nodes), weights, count, level=level, slack=slack)
    # Points without a node between them have the same share: one of them is enough.
    steps = np.unique(nodes <= points[:, None], axis=0).astype(np.float64)
    stairs = joint_level(steps, weights, count, level=level)
    band = rule.smooth(lambda nodes: kernel(points, nodes), level=curve)
    # Outside of the spectrum's ends the kernel is exactly zero.
    within = (points >= kernel.low) & (points <= kernel.high)
    slack = np.where(within | (kernel.low == kernel.high), slack, 0.0)
    low, high = np.maximum(band.low - slack, 0.0), band.high + slack
    return Band(band.centre, low, high), rule.share(below, points, level=stairs)


def _exact(
    rule: Quadrature, points: np.ndarray, values: np.ndarray
) -> tuple[Band, Band]:
    centre = values.mean(axis=(1, 2))
    nodes, n = rule.nodes[0], rule.size
    at, low, high = (
        np.searchsorted(nodes, points + shift, side="right") / n
        for shift in (0.0, -rule.noise, rule.noise)
    )
    return Band(centre, centre, centre), Band(at, low, high)
