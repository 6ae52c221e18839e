r"""The optimiser in use: rate, stability bound, scale and decay of each parameter.

Along an eigenvector with eigenvalue $\lambda$ each rule is a linear recursion of second
order; it contracts while both roots lie inside the unit circle, which the criterion of
Jury turns into a bound on the rate $\eta$:

- gradient descent: $\eta\lambda < 2$;
- heavy ball, $m \leftarrow \beta m + (1 - \tau)g$, $w \leftarrow w - \eta m$:
  $w_{t+1} - (1 + \beta - \eta(1-\tau)\lambda)w_t + \beta w_{t-1} = 0$, so
  $\eta\lambda < 2(1 + \beta)/(1 - \tau)$;
- Nesterov, $w \leftarrow w - \eta((1 - \tau)g + \beta m)$:
  $\eta\lambda < 2(1+\beta)/((1+2\beta)(1-\tau))$, of torch's SGD $\tau = 0$, of NAdam
  $\tau = \beta$;
- Adam with $\tau = \beta_1$ and the preconditioner held fixed: as heavy ball, with
  $\lambda$ of $P^{-1}H$; $38$ at $\beta_1 = 0.9$, as Cohen et al. (2022) found.

With a separate rate $\eta_i$, momentum $\beta_i$ and decay $\delta_i$ for each
parameter, descent on a quadratic is $z^2u - z(I + B - S)u + Bu = 0$ in the eigenvectors
$u$ of a step, $B$ the momenta, $D$ the rates and $S = D^{1/2}(H + \Delta)D^{1/2}$. For
a unit $u$ it is a quadratic of $z$ with the real coefficients $b = u^*Bu < 1$ and $s =
u^*Su$, whose roots lie inside of the unit circle while $0 < s < 2(1 + b)$. So it is
stable while $S \prec 2(I + B)$: the largest eigenvalue of $S$ with every rate divided
by its own bound is below 1. Of Nesterov's rule with unlike momenta that is where a root
passes $-1$.

References:
    Cohen et al. (2022), Adaptive gradient methods at the edge of stability, eq. (2).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

_ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad")


class Treatment(NamedTuple):
    """Rate, largest stable rate times curvature, and decay through the gradient."""

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
        started: Whether it has a state, as after a step.
    """

    name: str
    treatments: tuple[Treatment | None, ...]
    sizes: tuple[int, ...]
    started: bool

    @property
    def alike(self) -> bool:
        """Whether it holds all parameters, with equal settings."""
        first = self.treatments[0]
        return first is not None and all(each == first for each in self.treatments)

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
        roots = [
            0.0 if t is None else (t.rate / t.most) ** 0.5 for t in self.treatments
        ]
        return self._spread(roots)

    def shifts(self) -> Tensor:
        """Return what decay adds to the curvature, for each entry."""
        return self._spread([0.0 if t is None else t.decay for t in self.treatments])

    def _spread(self, values: list[float]) -> Tensor:
        flat = torch.tensor(values, dtype=torch.float64, device="cpu")
        return flat.repeat_interleave(torch.tensor(self.sizes, device="cpu"))


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
    groups, leaves = _groups(optimizer), list(parameters.values())
    own = [groups.get(id(p)) for p in leaves]
    if all(group is None for group in own):
        return None
    return InUse(
        name=name,
        treatments=tuple(None if g is None else _treatment(name, g) for g in own),
        sizes=tuple(p.numel() for p in leaves),
        started=any(
            g is not None and _squares(optimizer, g, p) is not None
            for g, p in zip(own, leaves, strict=True)
        ),
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
    momentum = float(group.get("momentum", 0.0))
    dampening, nesterov = float(group.get("dampening", 0.0)), group.get("nesterov")
    if name == "adam":
        momentum = dampening = float(group.get("betas", (0.0,))[0])  # none in Adagrad
        nesterov = "momentum_decay" in group  # of NAdam
    most = bound(momentum=momentum, dampening=dampening, nesterov=bool(nesterov))
    return Treatment(rate=float(group["lr"]), most=most, decay=float(decay or 0.0))


def bound(
    *, momentum: float = 0.0, dampening: float = 0.0, nesterov: bool = False
) -> float:
    r"""Return the largest stable product of rate and curvature.

    Args:
        momentum: $\beta$.
        dampening: $\tau$.
        nesterov: Whether the momentum is Nesterov's.

    Example:
        >>> bound(), bound(momentum=0.5), round(bound(momentum=0.9, dampening=0.9), 9)
        (2.0, 3.0, 38.0)
    """
    ahead = 1 + 2 * momentum if nesterov else 1.0
    return 2 * (1 + momentum) / (ahead * (1 - dampening))


def scales_of(optimizer: Any, parameters: Mapping[str, Tensor]) -> Tensor:
    r"""Return the diagonal of $P^{-1/2}$ from the state of an adaptive optimiser.

    $P = \sqrt{v} + \epsilon$ with $v$ the running mean of squared gradients.
    Parameters that it does not hold, or never moved, get 0.

    Args:
        optimizer: The optimiser in use.
        parameters: In the order of the Hessian's columns.
    """
    groups, flat = _groups(optimizer), []
    for parameter in parameters.values():
        group = groups.get(id(parameter), {})
        square = _squares(optimizer, group, parameter) if group else None
        root = torch.zeros_like(parameter, dtype=torch.float64).fill_(torch.inf)
        if square is not None:
            root = square.sqrt() + float(group.get("eps", 1e-8))
        flat.append(root.rsqrt().reshape(-1))
    return torch.cat([each.to(flat[0].device) for each in flat])


def _groups(optimizer: Optimizer) -> dict[int, dict[str, Any]]:
    """Return the group of each parameter that an optimiser holds, by its identity."""
    return {id(p): group for group in optimizer.param_groups for p in group["params"]}


def _squares(
    optimizer: Optimizer, group: Mapping[str, Any], parameter: Tensor
) -> Tensor | None:
    """Return the mean squared gradient that Adam, RMSprop and variants keep."""
    state = optimizer.state.get(parameter, {})
    if float(state.get("step", 1)) < 1:  # Adagrad has a state before its first step
        return None
    kept = {k: v.detach().double() for k, v in state.items() if isinstance(v, Tensor)}
    for key in ("max_exp_avg_sq", "exp_avg_sq"):
        if key in kept:  # a running mean, too small after few steps
            second = float(group.get("betas", (0.9, 0.999))[1])
            return kept[key] / (1 - second ** max(float(state.get("step", 1)), 1))
    if "square_avg" in kept:
        mean = kept.get("grad_avg")
        return kept["square_avg"] - (0.0 if mean is None else mean.square())
    if "exp_inf" in kept:  # of Adamax, a largest gradient
        return kept["exp_inf"].square()
    return kept.get("sum")
