"""Operators whose passes are counted, and preconditioned operators."""

from torch import Tensor

from theodolite.core import NormMode
from theodolite.instruments import Operator

from .site import Site

_ROUNDINGS = 10.0


class Counted(Operator):
    """An operator whose products count as passes of the survey.

    Its products are not compared with float64 again: ten times ``Site.graph_error``,
    which was measured on one product, bounds the rounding of all, by choice.

    Args:
        inner: The operator.
        site: Counts the passes.
    """

    def __init__(self, inner: Operator, site: Site) -> None:
        self._inner, self._site = inner, site
        self.shape, self.device = inner.shape, inner.device
        self.torch_dtype = inner.torch_dtype
        self.symmetric = inner.symmetric
        self.norm_mode: NormMode = getattr(inner, "norm_mode", site.norm_mode)
        self._largest = 0.0

    def _matvec(self, vector: Tensor) -> Tensor:
        """Multiply one vector."""
        self.passes += 1
        self._site.passes += 1
        product = self._inner.matvec(vector)
        size = float(vector.norm())
        if size:
            self._largest = max(self._largest, float(product.norm()) / size)
        self.noise_norm = _ROUNDINGS * self._site.graph_error * self._largest
        return product


class Preconditioned(Operator):
    r"""$S (H + \Delta) S$ for diagonals $S$ and $\Delta$, similar to $S^2(H + \Delta)$.

    Args:
        inner: $H$, symmetric.
        scales: The diagonal of $S$.
        shifts: The diagonal of $\Delta$; none by default.
    """

    symmetric = True

    def __init__(
        self, inner: Operator, scales: Tensor, *, shifts: Tensor | None = None
    ) -> None:
        self._inner = inner
        self._scales = scales.to(dtype=inner.torch_dtype, device=inner.device)
        self._shifts = None
        if shifts is not None and bool(shifts.any()):
            self._shifts = shifts.to(self._scales)
        self.shape, self.torch_dtype, self.device = (
            inner.shape,
            inner.torch_dtype,
            inner.device,
        )
        self.norm_mode: NormMode = getattr(inner, "norm_mode", NormMode.EVAL)

    def _matvec(self, vector: Tensor) -> Tensor:
        """Multiply one vector."""
        self.passes += 1
        scaled = self._scales * vector
        product = self._inner.matvec(scaled)
        if self._shifts is not None:
            product = product + self._shifts * scaled
        return self._scales * product
