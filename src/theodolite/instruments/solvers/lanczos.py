r"""The Lanczos process with full re-orthogonalisation and thick restarts.

A basis $V$ grows by one product a step, and every coefficient of Gram and Schmidt is
kept, $HV = VB + v\,b^\top$ with $b$ the coupling to the vector that comes next. For a
symmetric $H$ all but a band of $B$ is zero; that it comes out so measures the noise of
the products, and a restart on Ritz vectors needs no special form of $B$.

References:
    Parlett (1998), The Symmetric Eigenvalue Problem, §6.9 (twice is enough), §13.
    Wu and Simon (2000), Thick-restart Lanczos method, SIAM J. Matrix Anal. 22.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from theodolite.core import ConfigError, MeasurementError

from ..distributed.processes import Team
from ..operators.operator import Operator, products
from ..operators.rounding_noise import noise_norm
from ..operators.vectors import Basis, DeviceBasis, all_finite, norm, take_out
from ..passes.forecast import Place, forecast_of

Placement = Literal["auto", "device", "host", "shared"]


@dataclass(frozen=True)
class Storage:
    """Makes bases of one kind.

    Attributes:
        place: On the device, on the host, or shared over the processes of ``team``.
        team: Processes that share it.
        alike: Whether products come out the same in all of them.
    """

    place: Place = "device"
    team: Team | None = None
    alike: bool = False

    def basis(self, capacity: int, length: int, like: Tensor | Operator) -> Basis:
        """Return an empty basis for vectors like a given one."""
        if self.place == "shared" and self.team is not None:
            from .basis_over_ranks import SharedBasis

            return SharedBasis(capacity, length, like, self.team, alike=self.alike)
        if self.place == "host":
            from .basis_on_host import HostBasis

            return HostBasis(capacity, length, like)
        return DeviceBasis(capacity, length, like)

    def told(self, words: str) -> str:
        """Add the place of the basis to a method, if it is not the device."""
        if self.place == "shared" and self.team is not None:
            return f"{words}, basis over {self.team.size} processes"
        return words if self.place == "device" else f"{words}, basis on the host"


ON_DEVICE = Storage()


def storage_for(
    operator: Operator,
    wish: Placement,
    *,
    vectors: int,
    least: int | None = None,
    length: int | None = None,
) -> Storage:
    """Return where to keep a basis, or raise if there is no room for it.

    Args:
        operator: Whose products fill it.
        wish: The requested place, or "auto" for the fastest with room.
        vectors: How many it may come to hold.
        least: How many it holds for certain; as many by default.
        length: Numbers that each of them holds; as many as columns by default.
    """
    _refuse_other_wishes(operator, wish)
    if wish == "shared":
        team = _team(operator)
        return Storage("shared", team, alike=team is getattr(operator, "team", None))
    if wish != "auto":
        return Storage(wish)
    forecast = forecast_of(operator, vectors=vectors, length=length)
    if forecast.placement is not None:
        team = getattr(operator, "team", None)
        return Storage(forecast.placement, team, alike=True)
    # A processor's memory is taken as rows are written, not before.
    share = forecast.basis * (least or vectors) // max(1, vectors)
    if operator.device.type == "cpu" and share <= forecast.device_free:
        return ON_DEVICE
    raise MeasurementError(
        f"{forecast}, or lower basis_bytes, which makes do with fewer vectors"
    )


def _refuse_other_wishes(operator: Operator, wish: Placement) -> None:
    team = getattr(operator, "team", None) or Team()
    if not team.alike(get_args(Placement).index(wish)):
        raise ConfigError(
            f"basis is {wish!r} on this rank and another on others: pass the same on "
            "every rank"
        )


def _team(operator: Operator) -> Team:
    """Return the operator's own team, or that of all processes."""
    team = getattr(operator, "team", None) or Team()
    if not team.several and dist.is_available() and dist.is_initialized():
        team = Team(True)
    if not team.several:
        raise ConfigError(
            "basis is 'shared', and this process is alone: start several with "
            "torchrun, or pass basis='host'"
        )
    return team


@dataclass(frozen=True)
class Ritz:
    r"""Ritz values, ascending, with the numbers that certify them.

    Attributes:
        values: $\theta_i$.
        vectors: Coordinates in the basis, one column each.
        couplings: $b^\top s_i$, signed: the residual is this times the next vector.
        leaks: Norm of the part of $Hy_i$ along vectors that were locked.
    """

    values: np.ndarray
    vectors: np.ndarray
    couplings: np.ndarray
    leaks: np.ndarray

    @property
    def bounds(self) -> np.ndarray:
        r"""Residual norms $\|Hy_i - \theta_i y_i\|$ in exact arithmetic."""
        return np.hypot(self.couplings, self.leaks)


class Krylov:
    r"""An orthonormal basis that grows by one product per step.

    Rows are stored in the operator's own precision: against float64 storage on float32
    operators Ritz values moved by less than the noise of one product (1e-9 of the norm
    in place of 2e-7), for twice the memory. The small projected matrix is float64.

    Attributes:
        size: Vectors that were multiplied; one more is pending.
        scale: Lower bound on $\|H\|$ from the products seen.
        noise: Norm of what should be zero by symmetry, an estimate of the error of a
            product.
        invariant: Whether the basis spans an invariant subspace, so nothing is pending.
        nearly: Whether the basis ever came so close to an invariant subspace that
            copies of its eigenvalues may be left outside.
        finite: False once a product held NaN or infinity; that product is not used.
    """

    def __init__(
        self,
        operator: Operator,
        start: Tensor,
        *,
        capacity: int,
        locked: Tensor | None = None,
        scale: float = 0.0,
        storage: Storage = ON_DEVICE,
    ) -> None:
        n = operator.shape[1]
        self._operator = operator
        self._locked = start.new_empty(0, n) if locked is None else locked
        self.room = n - len(self._locked)
        self.capacity = max(1, min(capacity, self.room))
        self._rows = storage.basis(self.capacity + 1, n, start)
        self._projected = np.zeros((self.capacity + 1, self.capacity + 1))
        self._leaks = np.zeros((len(self._locked), self.capacity + 1))
        self.size, self.scale, self.noise = 0, scale, 0.0
        self.finite, self.nearly, self.invariant = True, False, self.room < 1
        self._explained = 0.0
        if not self.invariant:
            _project_out(start, self._locked)
            _project_out(start, self._locked)
            self._rows.store(0, start / norm(start))

    @property
    def full(self) -> bool:
        """Whether another step needs a restart first."""
        return self.size == self.capacity

    @property
    def basis(self) -> Tensor:
        """The vectors that were multiplied, as rows."""
        return self._rows.rows(self.size)

    @property
    def pending(self) -> Tensor:
        """The next vector, zero if there is none."""
        return self._rows.row(self.size) * (0.0 if self.invariant else 1.0)

    @property
    def projected(self) -> np.ndarray:
        """The operator within the basis, symmetrised."""
        block = self._projected[: self.size, : self.size]
        return (block + block.T) / 2

    @property
    def leaks(self) -> np.ndarray:
        """Components of the products along vectors that were locked, as rows."""
        return self._leaks[:, : self.size]

    @property
    def recurrence(self) -> tuple[np.ndarray, np.ndarray]:
        """Diagonal and couplings to the next vector; before any restart only."""
        m = self.size
        below = self._projected[np.arange(1, m + 1), np.arange(m)]
        return np.diagonal(self._projected)[:m], below

    @property
    def growing(self) -> bool:
        """Whether there is a vector to multiply, and room for the next."""
        return self.finite and not self.full and not self.invariant

    @property
    def next(self) -> Tensor:
        """The vector to multiply, as it lies in the basis."""
        return self._rows.row(self.size)

    def step(self) -> None:
        """Multiply the pending vector, and make the next one."""
        self.take(self._operator.product(self.next).detach().clone())

    def take(self, product: Tensor) -> None:
        """Make the next vector from the product of the pending one, which is used up.

        Args:
            product: A tensor that shares no memory; it is overwritten.
        """
        with torch._C.DisableTorchFunction():  # an open model listens to all calls
            self._take(self._rows.agreed(product))
        if self.finite:
            # What the rounding of the graph explains is noise, a part of every error.
            self._explained = refuse_asymmetry(
                self._operator, self.noise, self.scale, self._explained
            )

    def _take(self, product: Tensor) -> None:
        m = self.size
        if not all_finite(product):
            self.finite = False
            return
        self.scale = max(self.scale, norm(product))
        leak = _project_out(product, self._locked)
        seen = self._rows.remove_twice(product, m + 1)
        if len(self._locked):
            # What rounding has left along them would grow as the rest is normalised,
            # and the next vector lie among known eigenvectors: ghosts of them at 0.
            leak += _project_out(product, self._locked)
            seen += self._rows.remove(product, m + 1)
        self._leaks[:, m] = leak
        self._projected[: m + 1, m] = seen
        gap = seen[:m] - self._projected[m, :m]
        self.noise = max(self.noise, float(np.linalg.norm(gap)))
        self.size = m + 1
        self._couple(product)

    def _couple(self, rest: Tensor) -> None:
        beta, m = norm(rest), self.size
        eps = torch.finfo(rest.dtype).eps
        # Rounding is amplified on the way to an invariant subspace: with 20 distinct
        # eigenvalues of six copies each the coupling came down to 1e-9 only.
        self.nearly = self.nearly or beta <= max(1e-7, 100 * eps) * self.scale
        if m == self.room or beta <= 10 * max(eps * self.scale, self.noise):
            # What is left is noise: an invariant subspace. Its size stays on record as
            # the coupling, so that residuals remain honest.
            self.invariant = True
        else:
            self._rows.store(m, rest.div_(beta))
        self._projected[m, m - 1] = 0.0 if m == self.room else beta

    def ritz(self, size: int | None = None) -> Ritz:
        """Return the Ritz pairs of the basis, or of its first ``size`` vectors.

        The latter only where there was no restart.
        """
        m = self.size if size is None else size
        block = self._projected[:m, :m]
        values, vectors = np.linalg.eigh((block + block.T) / 2)
        return Ritz(
            values,
            vectors,
            self._projected[m, :m] @ vectors,
            np.linalg.norm(self._leaks[:, :m] @ vectors, axis=0),
        )

    def lift(self, coordinates: np.ndarray) -> Tensor:
        """Return vectors, as rows, from coordinates in the basis, as columns."""
        return self._rows.combined(coordinates.T)

    def restart(self, ritz: Ritz, keep: np.ndarray) -> None:
        """Shrink the basis to some Ritz vectors and the pending vector."""
        m, p = self.size, len(keep)
        self._rows.rotate(ritz.vectors[:, keep].T)
        self._rows.store(p, self._rows.row(m))
        self._leaks[:, :p] = self._leaks[:, :m] @ ritz.vectors[:, keep]
        self._projected[:] = 0
        self._projected[range(p), range(p)] = ritz.values[keep]
        self._projected[p, :p] = ritz.couplings[keep]
        self.size = p


def grow(spaces: Sequence[Krylov], operator: Operator) -> None:
    """Fill several Krylov spaces of one operator, one step of each at a time."""
    with operator.together():
        while growing := [space for space in spaces if space.growing]:
            if len(growing) == 1:  # in no more memory than one takes
                growing[0].step()
                continue
            multiplied = products(operator, [space.next for space in growing])
            for space, product in zip(growing, multiplied, strict=True):
                space.take(product)


def _project_out(vector: Tensor, rows: Tensor) -> np.ndarray:
    """Take the rows' components out of the vector, in place, and return them."""
    return take_out(vector, rows).double().cpu().numpy()


# An error E makes products of a symmetric operator disagree by 2|E| at most.
_EXPLAINED = 2.0


def refuse_asymmetry(
    operator: Operator, gap: float, scale: float, explained: float = 0.0
) -> float:
    """Refuse products that disagree with symmetry by more than rounding explains.

    Half the digits are granted to rounding, and all of them where there is nothing
    else; beyond that the graph is looked into.

    Args:
        operator: What made the products.
        gap: Their disagreement.
        scale: Their size.
        explained: Disagreement that is known to be rounding.

    Returns:
        The disagreement that is now known to be rounding.
    """
    eps = torch.finfo(operator.torch_dtype).eps
    if gap <= max(eps**0.5 * scale, explained) or scale <= eps:
        return explained
    explained = _EXPLAINED * noise_norm(operator)
    if gap > explained:
        raise MeasurementError(
            f"the products disagree with symmetry by {gap / scale:.1e} of their size, "
            f"and the rounding of the graph explains {explained / scale:.1e}: pass a "
            "symmetric operator, or look for randomness and for derivatives written "
            "by hand in the model"
        )
    return explained
