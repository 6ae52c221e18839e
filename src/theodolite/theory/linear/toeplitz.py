"""Spectrum of a symmetric block Toeplitz matrix, without building it."""

import numpy as np

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers


class ToeplitzSpectrum:
    r"""Counts, extremes and quantiles of the block Toeplitz Hessian of $n = 1$.

    It is $H = I_R \otimes (B - A_s) + 11^\top \otimes A_s + T \otimes A_a$ with
    $A_s, A_a$ the symmetric and antisymmetric parts of $A$ and $T = L - L^\top$ for the
    strictly lower triangle of ones $L$. $T$ is skew-circulant, so its eigenvectors are
    $f_k = (e^{i\theta_k j})_j/\sqrt R$ with $\theta_k = (2k-1)\pi/R$ and eigenvalues
    $-i\cot(\theta_k/2)$. In that basis $H$ is $R$ Hermitian blocks
    $D_k = B - A_s - i\cot(\theta_k/2)A_a$ plus $\varphi\varphi^* \otimes A_s$ with
    $|\varphi_k|^2 = 1/(R\sin^2(\theta_k/2))$: a change of rank at most $d^2$.

    Haynsworth's inertia formula then counts the eigenvalues below $\lambda$: those of
    the blocks, plus the negative eigenvalues of $-A_s^{-1} - \sum_k |\varphi_k|^2 (D_k
    - \lambda)^{-1}$, minus those of $-A_s^{-1}$. Bisection gives any order statistic in
    memory $O(R d^4)$ instead of $O(R^2 d^4)$.

    Assumes: real blocks, ``b`` symmetric.

    Attributes:
        size: Number of eigenvalues.
        bound: A number that no eigenvalue exceeds in magnitude.

    Example:
        >>> a, b = np.array([[1.0]]), np.array([[2.0]])
        >>> round(ToeplitzSpectrum(a, b, units=3).largest(), 10)  # 2I + offdiagonal 1
        4.0
    """

    def __init__(self, a: Numbers, b: Numbers, units: int) -> None:
        b = as_numbers("b", b, "size", "size")
        a, b = as_numbers("a", a, len(b), len(b)), as_numbers("b", b, len(b), len(b))
        units = as_integer("units", units, 1)
        even, odd = (a + a.T) / 2, (a - a.T) / 2
        # θ and 2π − θ give conjugate blocks, hence half of them with weight 2.
        k = np.arange(1, (units + 1) // 2 + 1)
        theta = (2 * k - 1) * np.pi / units
        paired = np.where(np.isclose(theta, np.pi), 1.0, 2.0)
        cot = np.where(paired == 1.0, 0.0, 1 / np.tan(theta / 2))
        blocks = (b - even)[None] - 1j * cot[:, None, None] * odd[None]
        self._values, vectors = np.linalg.eigh(blocks)
        self._weights = paired
        values, basis = np.linalg.eigh(even)
        kept = np.abs(values) > len(even) * np.finfo(float).eps * np.abs(values).max()
        self._inverse = 1 / values[kept]
        self._reach = paired / (units * np.sin(theta / 2) ** 2)
        # Eigenvectors of each block seen through the range of the symmetric part, real
        # above imaginary parts: conjugate blocks cancel what is imaginary in the sum.
        seen = np.conj(np.swapaxes(vectors, 1, 2)) @ basis[:, kept]
        parts = np.stack([np.real(seen), np.imag(seen)])
        self._seen = parts.reshape(2 * self._values.size, int(kept.sum()))
        self.size = units * len(even)
        reach = np.abs(self._values).max() + units * np.abs(values).max()
        self.bound = 1.01 * float(reach) + float(np.finfo(float).tiny)

    def below(self, level: float) -> int:
        """Number of eigenvalues below a level."""
        gaps = self._values - level
        # A level that meets an eigenvalue of a block is taken as just below it.
        floor = np.finfo(float).eps * self.bound
        gaps = np.where(np.abs(gaps) < floor, floor, gaps)
        inside = int(self._weights @ (gaps < 0).sum(axis=1))
        if self._inverse.size == 0:
            return inside
        scale = np.tile((self._reach[:, None] / gaps).ravel(), 2)
        resolvent = (self._seen * scale[:, None]).T @ self._seen
        capacitance = -np.diag(self._inverse) - (resolvent + resolvent.T) / 2
        extra = int((np.linalg.eigvalsh(capacitance) < 0).sum())
        return inside + extra - int((self._inverse > 0).sum())

    def within(self, size: float) -> int:
        """Number of eigenvalues of magnitude below a size."""
        return self.below(size) - self.below(-size)

    def largest(self) -> float:
        """Largest magnitude of an eigenvalue."""
        return self.magnitude(self.size)

    def magnitude(self, rank: int) -> float:
        """The rank-th smallest magnitude, counted from 1, to about 14 digits."""
        if not 1 <= rank <= self.size:
            raise ConfigError(f"rank {rank} is not among 1 to {self.size}")
        low, high = 0.0, self.bound
        least = 4 * np.finfo(float).eps * self.bound
        while high - low > 4 * np.finfo(float).eps * high:
            if high < least:
                return 0.0
            middle = (low + high) / 2
            if self.within(middle) >= rank:
                high = middle
            else:
                low = middle
        return (low + high) / 2

    def magnitude_quantile(self, quantile: float) -> float:
        """Quantile of the magnitudes, linear between order statistics as in NumPy."""
        place = float(quantile) * (self.size - 1)
        rank = int(np.floor(place)) + 1
        low = self.magnitude(rank)
        share = place - np.floor(place)
        if share == 0 or rank == self.size:
            return low
        return float(low + share * (self.magnitude(rank + 1) - low))

    def index(self) -> float:
        """Fraction of negative eigenvalues."""
        return self.below(0.0) / self.size
