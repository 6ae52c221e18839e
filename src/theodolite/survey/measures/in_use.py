r"""The optimiser in use: rate, stability bound and decay of each parameter.

With a separate rate $\eta_i$, momentum $\beta_i$ and decay $\delta_i$ for each
parameter, descent on a quadratic is $z^2u - z(I + B - S)u + Bu = 0$ in the eigenvectors
$u$ of a step, $B$ the momenta, $D$ the rates and $S = D^{1/2}(H + \Delta)D^{1/2}$. For
a unit $u$ it is a quadratic of $z$ with the real coefficients $b = u^*Bu < 1$ and $s =
u^*Su$, whose roots lie inside of the unit circle while $0 < s < 2(1 + b)$. So it is
stable while $S \prec 2(I + B)$: the largest eigenvalue of $S$ with every rate divided
by its own bound is below 1. Of Nesterov's rule with unlike momenta that is where a root
passes $-1$.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from .stability import bound

_ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad")


@dataclass(frozen=True, kw_only=True)
class Treatment:
    """Settings of a parameter group.

    Attributes:
        rate: The learning rate.
        most: Largest stable product of rate and curvature.
        decay: Weight decay that acts through the gradient.
    """

    rate: float
    most: float
    decay: float


@dataclass(frozen=True, kw_only=True)
class InUse:
    """An optimiser that holds some parameters of a model.

    Attributes:
        name: Name of its kind, which selects its stable rate.
        treatments: One per parameter; None if the optimiser does not hold it.
        sizes: Number of entries of each parameter.
    """

    name: str
    treatments: tuple[Treatment | None, ...]
    sizes: tuple[int, ...]

    @property
    def alike(self) -> bool:
        """Whether one stable rate for all parameters applies to it.

        It does not if groups differ, parameters are left out, or decay is scaled.
        """
        first = self.treatments[0]
        if first is None or any(each != first for each in self.treatments):
            return False
        return self.plain or not first.decay

    @property
    def plain(self) -> bool:
        """Whether steps follow the gradient without scaling."""
        return self.name in ("gd", "momentum")

    @property
    def rates(self) -> set[float]:
        """Learning rates of all groups with parameters of the model."""
        return {each.rate for each in self.treatments if each is not None}

    def scales(self) -> Tensor:
        """Return the root of rate over bound for each entry; 0 if it is not trained."""
        return self._spread([t and math.sqrt(t.rate / t.most) for t in self.treatments])

    def shifts(self) -> Tensor:
        """Return what decay adds to the curvature, for each entry."""
        return self._spread([t and t.decay for t in self.treatments])

    def _spread(self, values: list[float | None]) -> Tensor:
        flat = torch.tensor([value or 0.0 for value in values], dtype=torch.float64)
        return flat.repeat_interleave(torch.tensor(self.sizes))


def in_use(
    optimizer: Optimizer | None, parameters: Mapping[str, Tensor]
) -> InUse | None:
    """Return the settings that an optimiser has for these parameters.

    Return None without an optimiser, for a kind without bound, or if it holds none.

    Args:
        optimizer: The optimiser.
        parameters: In the order of the Hessian's columns.
    """
    name = "" if optimizer is None else kind_of(optimizer)
    if optimizer is None or not name:
        return None
    groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    own = [groups.get(id(p)) for p in parameters.values()]
    if all(group is None for group in own):
        return None
    return InUse(
        name=name,
        treatments=tuple(None if g is None else _treatment(name, g) for g in own),
        sizes=tuple(p.numel() for p in parameters.values()),
    )


def kind_of(optimizer: Optimizer) -> str:
    """Return the name of an optimiser's stable rate, or an empty string."""
    kind = type(optimizer).__name__
    if kind == "SGD":
        momentum = any(group.get("momentum") for group in optimizer.param_groups)
        return "momentum" if momentum else "gd"
    if kind == "RMSprop":
        return "rmsprop"
    return "adam" if kind in _ADAPTIVE else ""


def _treatment(name: str, group: Mapping[str, Any]) -> Treatment:
    decay = 0.0 if group.get("decoupled_weight_decay") else group.get("weight_decay")
    return Treatment(
        rate=float(group["lr"]), most=bound_of(name, group), decay=float(decay or 0.0)
    )


def bound_of(name: str, group: Mapping[str, Any]) -> float:
    """Return the bound on rate times curvature, by a group's settings or defaults.

    Args:
        name: Name of the update rule.
        group: Settings of the group; empty if this rule is not in use.
    """
    if name == "adam":
        usual = (0.9,) if not group else (0.0,)  # Adagrad has no momentum
        beta = float(group.get("betas", usual)[0])
        ahead = "momentum_decay" in group  # of NAdam
        return bound(momentum=beta, dampening=beta, nesterov=ahead)
    return bound(
        momentum=float(group.get("momentum", 0.9 if name == "momentum" else 0.0)),
        dampening=float(group.get("dampening", 0.0)),
        nesterov=bool(group.get("nesterov", False)),
    )
