"""Three points of one class: contributions, margins and equilibria."""

from typing import Any

from theodolite.core import Row, named_rows

from ..shared.linear_descent import descend, objectives
from .config import AT_NORMS, THREE_DECAYS, THREE_START, Config, three_points

# Descent has come to rest by then to this much.
REST = 1e-9


def points(config: Config) -> list[Row]:
    """Descend on the square loss with decay and on the exponential loss without."""
    import torch

    x, y = (torch.tensor(a) for a in three_points())
    scale, angle = THREE_START
    rho = torch.tensor([scale], dtype=torch.float64)
    turn = torch.tensor([angle], dtype=torch.float64)
    v = torch.stack([turn.cos(), turn.sin()], dim=1)
    rate = 0.1
    steps = round(config.end / rate)
    rows: list[Row] = []
    for decay in THREE_DECAYS:
        end = descend("square", rho, v, (x, y), decay, rate, steps)
        rows += _square(end, x, y, decay)
    _, end_v = descend("exponential", rho, v, (x, y), 0.0, rate, steps)
    for n, margin in enumerate(x @ end_v[0]):
        rows += named_rows({"margin": margin}, 1e-4, sample=n)
    return [*rows, *_equilibria(x, y)]


def _square(end: tuple[Any, Any], x: Any, y: Any, decay: float) -> list[Row]:
    """Return residuals, their shares of Eq 29, and Eqs 36 and 37 at the end."""
    rho, v = float(end[0][0]), end[1][0]
    f = x @ v
    error = rho * f - y
    alpha = error / (error @ f)
    rows = named_rows({"sum_gap": (alpha @ x - v).norm()}, REST, decay=decay)
    for n in range(len(y)):
        each = (error[n] * (x[n] - v * f[n])).norm()
        found = {"residual": -error[n], "alpha": alpha[n], "each_gap": each}
        rows += named_rows(found, REST * 10, sample=n, decay=decay)
    return rows


def _equilibria(x: Any, y: Any) -> list[Row]:
    """Return how fast the exponential flow leaves (1, 0), at several norms."""
    import torch

    rows: list[Row] = []
    for norm in AT_NORMS:
        rho = torch.tensor([norm], dtype=torch.float64)
        v = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
        value = objectives("exponential", rho, v, (x, y), 0.0).sum()
        (g,) = torch.autograd.grad(value, v)
        along = (g - (g * v.detach()).sum() * v.detach()).norm()
        rows += named_rows({"leaving": along}, 1e-14, norm=norm)
    return rows
