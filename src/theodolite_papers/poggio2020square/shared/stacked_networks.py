r"""Weight-normalised networks $g = \rho f$, many at once, trained to rest.

$f(x) = V_L\,\sigma(V_{L-1} \cdots \sigma(V_1 x))$ with $\|V_k\| = 1$; the objective is
$\sum_n (\rho f_n - y_n)^2 + \lambda\rho^2$, whose critical points are those of the
paper's flow in $(\rho, V_k)$.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from theodolite.core import stream

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class StackedNetworks:
    """Networks of one shape, one per seed."""

    # Matrices of each layer, stacked (networks, rows, columns), of any norm; tied
    # layers are one and the same tensor.
    weights: list["Tensor"]
    scale: "Tensor"  # the factor ρ of each network
    relu: bool  # whether hidden layers are rectified

    @property
    def parameters(self) -> list["Tensor"]:
        """All trained tensors, each once."""
        return [*{id(w): w for w in self.weights}.values(), self.scale]

    def normalised(self) -> list["Tensor"]:
        """Return V_k of every layer, differentiable."""
        return [w / w.flatten(1).norm(dim=1)[:, None, None] for w in self.weights]

    def directions(self) -> list["Tensor"]:
        """Return V_k of every layer as new leaf tensors."""
        return [v.detach().clone().requires_grad_() for v in self.normalised()]


def forward(layers: "list[Tensor]", x: "Tensor", *, relu: bool) -> "list[Tensor]":
    """Return the inputs of every layer and, last, the outputs (networks, N)."""
    state = x.T.expand(len(layers[0]), -1, -1)
    states = [state]
    for place, layer in enumerate(layers):
        state = layer @ state
        if relu and place < len(layers) - 1:
            state = state.clamp(min=0)
        states.append(state)
    return [*states[:-1], states[-1][:, 0]]


def draw(
    seeds: tuple[int, ...],
    sizes: tuple[int, ...],
    *,
    relu: bool,
    tied: bool = False,
    scale: float = 1.0,
) -> StackedNetworks:
    """Draw normal matrices of Frobenius norm 1, with ``scale`` as the first ρ.

    If tied, all layers but the last are one matrix, as in a recurrent network that is
    run for as many steps.
    """
    import torch

    def matrix(place: int, rows: int, columns: int) -> "Tensor":
        drawn = [
            stream(seed, "stacked networks", place).normal(size=(rows, columns))
            for seed in seeds
        ]
        unit = [one / np.linalg.norm(one) for one in drawn]
        return torch.tensor(np.array(unit)).requires_grad_()

    shapes = list(enumerate(zip(sizes[1:], sizes, strict=False)))
    if tied:
        first = matrix(0, *shapes[0][1])
        layers = [first] * (len(shapes) - 1) + [matrix(*_flat(shapes[-1]))]
    else:
        layers = [matrix(*_flat(shape)) for shape in shapes]
    start = torch.full((len(seeds),), scale, dtype=torch.float64)
    return StackedNetworks(weights=layers, scale=start.requires_grad_(), relu=relu)


def objective(
    networks: StackedNetworks, x: "Tensor", y: "Tensor", decay: float
) -> "Tensor":
    """Return the regularised sum of squares of each network."""
    outputs = forward(networks.normalised(), x, relu=networks.relu)[-1]
    errors = networks.scale[:, None] * outputs - y
    return (errors**2).sum(dim=1) + decay * networks.scale**2


def descend(
    networks: StackedNetworks,
    x: "Tensor",
    y: "Tensor",
    *,
    decay: float,
    steps: int,
    rates: tuple[float, float],
    one_sample: bool = False,
) -> None:
    """Train networks in place with momentum, the rate falling geometrically.

    ``rates`` are the first and the last. With ``one_sample`` each step sees one sample,
    with its share of the decay.
    """
    import torch

    optimizer = torch.optim.SGD(networks.parameters, lr=rates[0], momentum=0.9)
    fall = (rates[1] / rates[0]) ** (1 / steps)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, fall)
    order = stream(0, "stacked networks", "order").integers(len(x), size=steps)
    for step in range(steps):
        optimizer.zero_grad()
        if one_sample:
            here = slice(int(order[step]), int(order[step]) + 1)
            loss = objective(networks, x[here], y[here], decay / len(x))
        else:
            loss = objective(networks, x, y, decay)
        loss.sum().backward()
        optimizer.step()
        schedule.step()


def polish(
    networks: StackedNetworks, x: "Tensor", y: "Tensor", *, decay: float, steps: int
) -> None:
    """Bring networks without kinks to rest by a quasi-Newton method."""
    import torch

    optimizer = torch.optim.LBFGS(
        networks.parameters,
        max_iter=steps,
        max_eval=2 * steps,
        tolerance_grad=1e-12,
        tolerance_change=1e-18,
        history_size=40,
        line_search_fn="strong_wolfe",
    )

    def closure() -> "Tensor":
        optimizer.zero_grad()
        total = objective(networks, x, y, decay).sum()
        total.backward()
        return total

    optimizer.step(closure)  # type: ignore[arg-type]


def _flat(shape: tuple[int, tuple[int, int]]) -> tuple[int, int, int]:
    place, (rows, columns) = shape
    return place, rows, columns
