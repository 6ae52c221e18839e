"""Sampled energies of spherical spin glasses."""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import ConfigError, SpinGlassBlueprint, as_mixture, stream

# Largest number of couplings: 8 bytes each, and as many numbers per point.
_MOST_COUPLINGS = 2**25


class Interaction(nn.Module):
    """Couplings of one order: a number for each monomial, as the seed drew it.

    Attributes:
        order: Number of coordinates in a monomial.
        couplings: Coefficients, with all factors of the energy.
    """

    def __init__(self, order: int, couplings: Tensor) -> None:
        super().__init__()
        self.order = order
        # Couplings are fixed: only the point moves.
        self.couplings = nn.Parameter(couplings, requires_grad=False)

    def forward(self, monomials: Tensor) -> Tensor:
        """Return energies from all monomials of the order, one row per point."""
        return monomials @ self.couplings


class SpinGlass(nn.Module):
    r"""One sampled Hamiltonian; ``forward`` maps points to energies.

    All $\Lambda^r$ couplings of a monomial enter as their sum, which is normal with
    the multinomial coefficient for its variance: the same law, in
    $\binom{\Lambda + r - 1}{r}$ numbers.

    Attributes:
        blueprint: The blueprint it was sampled from.
        units: Interactions, in order.
    """

    def __init__(
        self, blueprint: SpinGlassBlueprint, interactions: list[Interaction]
    ) -> None:
        super().__init__()
        self.blueprint = blueprint
        self.units = nn.ModuleList(interactions)
        for order, (parents, factors, _) in _monomials(
            blueprint.width, blueprint.depth
        ).items():
            self.register_buffer(f"_parents_{order}", torch.from_numpy(parents.copy()))
            self.register_buffer(f"_factors_{order}", torch.from_numpy(factors.copy()))

    def forward(self, points: Tensor) -> Tensor:
        """Return the energy of each row, which need not lie on the sphere."""
        width = self.blueprint.width
        if points.ndim != 2 or points.shape[1] != width:
            raise ConfigError(
                f"points of shape {tuple(points.shape)}: this glass wants (points, "
                f"{width}), one row per point"
            )
        units: list[Interaction] = list(self.units)  # pyright: ignore
        energies, monomials, reached = points.new_zeros(len(points)), points, 1
        for unit in units:
            for order in range(reached + 1, unit.order + 1):
                parents = getattr(self, f"_parents_{order}")
                factors = getattr(self, f"_factors_{order}")
                monomials = monomials[:, parents] * points[:, factors]
            reached = unit.order
            energies = energies + unit(monomials)
        return energies


def build_spin_glass(
    blueprint: SpinGlassBlueprint, *, seed: int, dtype: torch.dtype
) -> SpinGlass:
    """Sample a Hamiltonian.

    Couplings of an order depend on the seed, the order and the width alone, so that
    mixtures of one seed differ in their weights only.
    """
    if blueprint.parameters > _MOST_COUPLINGS:
        raise ConfigError(
            f"a spin glass of width {blueprint.width} and depth {blueprint.depth} has "
            f"{blueprint.parameters:,} couplings, more than {_MOST_COUPLINGS:,}: lower "
            "the width or the greatest order"
        )
    tables = _monomials(blueprint.width, blueprint.depth)
    weights = dict(as_mixture(blueprint.mixture))
    interactions = []
    for order in blueprint.orders:
        repeats = tables[order][2] if order > 1 else np.ones(blueprint.width)
        samples = stream(seed, "couplings", blueprint.width, order).standard_normal(
            repeats.size
        )
        scale = -math.sqrt(weights[order] / float(blueprint.width) ** (order - 1))
        couplings = torch.from_numpy(scale * np.sqrt(repeats) * samples).to(dtype)
        interactions.append(Interaction(order, couplings))
    return SpinGlass(blueprint, interactions)


@lru_cache(maxsize=4)  # glasses of one shape are sampled one after the other
def _monomials(
    width: int, depth: int
) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    r"""Return how monomials of each order arise from those of the order below.

    Those of order r are $w_{i_1} \cdots w_{i_r}$ with $i_1 \le \dots \le i_r$: the
    position of the first r − 1 factors, the last factor, and the number of orders in
    which the factors can be written.
    """
    last, run, repeats = np.arange(width), np.ones(width), np.ones(width)
    tables = {}
    for order in range(2, depth + 1):
        children = width - last
        parents = np.repeat(np.arange(last.size), children)
        start = np.repeat(np.cumsum(children) - children, children)
        factors = last[parents] + np.arange(parents.size) - start
        run = np.where(factors == last[parents], run[parents] + 1, 1.0)
        repeats = repeats[parents] * order / run
        last = factors
        tables[order] = (parents, factors, repeats)
    return tables
