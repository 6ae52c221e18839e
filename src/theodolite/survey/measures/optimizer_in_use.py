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

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

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


def scales_of(
    optimizer: Optimizer | None,
    parameters: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
) -> tuple[Tensor, str]:
    r"""Return the diagonal of $P^{-1/2}$, and where it comes from.

    $P = \sqrt{v} + \epsilon$ with $v$ the running mean of squared gradients in the
    optimiser's state, or the squared gradient itself, as at a first step. If there is
    a state, parameters that the optimiser does not hold get 0: they never move.

    Args:
        optimizer: The optimiser in use.
        parameters: In the order of the Hessian's columns.
        gradients: Gradients of the loss, by the same names.
    """
    groups = {} if optimizer is None else _groups(optimizer)
    held = {n: p for n, p in parameters.items() if id(p) in groups}
    states = {n: _squares(optimizer, p) for n, p in held.items()}
    stated = bool(held) and all(state is not None for state in states.values())
    flat = []
    for name, parameter in parameters.items():
        group = groups.get(id(parameter), {})
        root, state = gradients[name].double().abs(), states.get(name)
        if stated and state is not None:
            root = state.sqrt()
        eps = float(group.get("eps", 1e-8))
        gone = stated and state is None
        flat.append(((root + eps).rsqrt() * (0.0 if gone else 1.0)).reshape(-1))
    source = "the optimiser's state" if stated else "the squared gradient of the batch"
    return torch.cat(flat), source


def _groups(optimizer: Optimizer) -> dict[int, dict[str, Any]]:
    """Return the group of each parameter that an optimiser holds, by its identity."""
    return {id(p): group for group in optimizer.param_groups for p in group["params"]}


def _squares(optimizer: Optimizer | None, parameter: Tensor) -> Tensor | None:
    """Return the mean squared gradient that Adam, RMSprop and variants keep."""
    if optimizer is None or parameter not in optimizer.state:
        return None
    state = optimizer.state[parameter]
    if "max_exp_avg_sq" in state:
        return _corrected(optimizer, parameter, state, "max_exp_avg_sq")
    if "exp_avg_sq" in state:
        return _corrected(optimizer, parameter, state, "exp_avg_sq")
    if "square_avg" in state:
        square = state["square_avg"].detach().double()
        mean = state.get("grad_avg")
        return square if mean is None else square - mean.detach().double().square()
    if "exp_inf" in state:  # of Adamax, a largest gradient
        return state["exp_inf"].detach().double().square()
    return state["sum"].detach().double() if "sum" in state else None


def _corrected(
    optimizer: Optimizer, parameter: Tensor, state: dict[str, Any], key: str
) -> Tensor:
    """Correct the bias of a running mean after few steps."""
    group = next(
        g for g in optimizer.param_groups if any(p is parameter for p in g["params"])
    )
    betas = group.get("betas", (0.9, 0.999))
    steps = float(state.get("step", 1))
    lacks = 1 - float(betas[1]) ** max(steps, 1)
    return state[key].detach().double() / lacks
