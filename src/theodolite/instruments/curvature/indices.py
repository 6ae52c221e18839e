"""Fraction of negative eigenvalues of the loss Hessian."""

from typing import Unpack

import numpy as np
import torch

from theodolite.core import ConfigError, Stopwatch

from ..model.process_state import expected
from ..operators.operator import Operator
from ..operators.rounding_noise import noise_norm
from ..passes.batches import Batches
from ..passes.forecast import rounds
from ..solvers.lanczos import Placement
from ..solvers.quadrature import Quadrature, quadrature_of
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
from .spectra import Index, whole_spectrum

# Products by default. On perceptrons the interval of one vector was 22/steps
# wide, and sampling added 3/sqrt(n) per vector: few vectors of many steps are best,
# until orthogonalising the basis costs more than its products.
_PRODUCTS, _STEPS = 512, 256
_BASIS_BYTES = 4 * 2**30


@measured
def index(
    model: Subject,
    batches: Batches | None = None,
    *,
    n_probes: int | None = None,
    steps: int | None = None,
    tol: float | None = None,
    rounding: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "auto",
    basis_bytes: int = 4 * 2**30,
    basis: Placement = "auto",
    **settings: Unpack[CurvatureSettings],
) -> Index:
    r"""Measure the fraction of negative eigenvalues of the loss Hessian.

    The width of the interval is known in advance: with eigenvalues on both sides of
    zero it is about $20/\text{steps} + 3/\sqrt{n\,\text{probes}}$ for $n$ parameters at
    95 %. More steps make it narrower; more than two vectors help only if $n$ is small.

    Args:
        model: Any module; or a :class:`Problem` or an operator, without ``batches``.
        batches: The module's data.
        n_probes: Random vectors, if the matrix is large; by default as many as make 512
            products with the steps.
        steps: Products per vector; 256 by default, or as many as fit in 4 GiB.
        tol: Wanted ``index_error``; ``status`` says whether it was reached.
        rounding: Size below which an eigenvalue has no sign. By default the error of a
            dense eigensolver; for products $100\,\varepsilon\,\|H\|$, ten times their
            measured noise, the rounding of the graph (below float64), or a thousand
            times the residual of a node that has converged to zero, whichever is
            largest.
        level: Confidence of the interval.
        seed: Seed of the vectors.
        method: "dense", "products", or "auto": dense up to 1000 parameters if
            ``max_matvecs`` is as large.
        basis_bytes: Memory limit of all bases at a time.
        basis: Kept on "device", "host", "shared" over a team, or "auto" (fastest).
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``, and
            ``operator``: ``Hessian``, ``GaussNewton``, ``Fisher`` or
            ``EmpiricalFisher``.

    Example:
        >>> from theodolite.instruments import MatrixOperator
        >>> matrix = torch.diag(torch.tensor([-1.0, 0.0, 1.0, 2.0]))
        >>> result = index(MatrixOperator(matrix, symmetric=True))
        >>> result.index, result.near_zero
        (0.25, 0.25)
    """
    operator = symmetric(model)
    n_probes, steps = _spent(operator, n_probes, steps)
    check_precision(tol)
    if rounding is not None and not rounding >= 0:
        raise ConfigError(f"rounding is {rounding!r}: pass a number from 0 up, or None")
    if goes_dense(operator, method, n_probes * steps):
        return whole_spectrum(operator).index(rounding=rounding)
    expected(n_probes * steps, bounded=True)
    watch, before = Stopwatch(), operator.passes
    rule = quadrature_of(
        operator,
        n_probes=n_probes,
        steps=steps,
        seed=seed,
        basis_bytes=basis_bytes,
        basis=basis,
    )
    if rounding is None:
        rounding = rounding_of(rule, operator)
    values = dict.fromkeys(("index", "index_low", "near_zero"), float("nan"))
    values |= {"index_error": np.inf, "index_high": np.nan, "near_zero_error": np.inf}
    if rule.nodes.size:
        values = _shares(rule, rounding, level)
    return Index(
        **values,
        rounding=rounding,
        count=operator.shape[1],
        level=level,
        precision=values["index_error"],
        tol=tol,
        status=rule.status_at(values["index_error"], tol),
        **norms_of(operator),
        seed=seed,
        cost=watch.read(passes=operator.passes - before),
        method=rule.storage.told("stochastic Lanczos quadrature"),
    )


def _spent(
    operator: Operator, n_probes: int | None, steps: int | None
) -> tuple[int, int]:
    """Return the number of vectors, and the steps of each."""
    if n_probes is not None:
        check_count("n_probes", n_probes)
    if steps is not None:
        check_count("steps", steps, 2)
    else:
        row = operator.shape[1] * operator.torch_dtype.itemsize
        most = _STEPS if n_probes is None else _PRODUCTS // n_probes
        steps = int(max(2, min(most, _BASIS_BYTES // row)))
    return n_probes or max(1, _PRODUCTS // steps), steps


def rounding_of(rule: Quadrature, operator: Operator) -> float:
    r"""Return the size below which an eigenvalue cannot be told from zero."""
    # Tens of times the noise of one product, since a whole run adds it up. A node that
    # converged to zero is resolved only by boundaries far from its residual: a
    # thousand times as far, for a leak of a thousandth.
    eps = torch.finfo(operator.torch_dtype).eps
    floor = max(100 * eps * rule.scale, 10 * rule.noise)
    if rounds(operator):
        floor = max(floor, noise_norm(operator))
    for nodes, weights, couplings in zip(
        rule.nodes, rule.weights, rule.couplings, strict=True
    ):
        nearest = int(np.abs(nodes).argmin())
        residual = abs(couplings[nearest]) / max(np.sqrt(weights[nearest]), 1e-150)
        if residual <= 1e-6 * rule.scale:
            floor = max(floor, 1e3 * float(residual))
    return floor


def _shares(rule: Quadrature, rounding: float, level: float) -> dict[str, float]:
    low = np.array([-np.inf, -rounding])
    high = np.array([np.nextafter(-rounding, -np.inf), rounding])
    band = rule.share(low, high, level=level)
    return {
        "index": float(band.centre[0]),
        "index_error": float(band.half_width[0]),
        "index_low": float(band.low[0]),
        "index_high": float(band.high[0]),
        "near_zero": float(band.centre[1]),
        "near_zero_error": float(band.half_width[1]),
    }
