r"""Gradient descent of directions on spheres, with norms that follow a schedule.

A layer is $W_k = \rho_k V_k$ with $\|V_k\| = 1$. The direction moves by the gradient
along its sphere, $S\,\partial L/\partial V_k$ with $S = I - V_kV_k^T$ and
$\partial L/\partial V_k = \rho_k\,\partial L/\partial W_k$, and is projected back; the
norm follows the schedule. For small steps this is
$\dot V_k = -S\,\partial L/\partial V_k$, equation 6 of Poggio & Liao (2020), with
$\rho(t)$ given instead of equation 5.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import torch
from torch import Tensor

from theodolite.core import ConfigError, MeasurementError

from .descent import check_number
from .norm_schedules import NormSchedule, norm_at

Group = dict[str, Any]
# How far off its sphere, relative to the radius, rounding may leave a direction.
_ROUNDINGS = 64


class SphereSGD(torch.optim.Optimizer):
    r"""SGD on the directions of layers; their norms follow a schedule.

    With $G = S\,\partial L/\partial V$, $u \leftarrow \mu u + G$ and
    $V \leftarrow (V - \eta u)/\|V - \eta u\|$, after which $u$ is projected to the new
    tangent space, so that momentum never leaves the sphere. How a direction moves does
    not depend on how $\rho$ is divided among layers, and weight decay has no effect.

    Every parameter of a group is one direction, with all its entries, unless the group
    has ``sphere=False``: then it is moved as by torch's ``SGD``. The product of the
    norms of a group of $K$ directions is $\rho(t)$, each being $\rho(t)^{1/K}$, where
    $t$ counts the steps of the group; weights are scaled when a group is added. With
    ``rho=None`` each parameter keeps its norm, which suits parameters whose scale has
    no effect because a batch norm follows. :func:`sphere_groups` sorts the parameters
    of a model.

    ``state_dict`` saves the numbers of a group, but not a schedule, which is code: pass
    it again to the optimiser that loads. A parameter without gradient keeps its
    direction, and its norm follows the schedule.

    Args:
        params: Parameters, named or not, or groups of them.
        lr: $\eta$.
        rho: Norm of a group: a number, a schedule such as :class:`LogisticNorm`, any
            function of the step, or None.
        momentum: $\mu$.
        nesterov: Whether to look ahead, $\mu u + G$ in place of $u$.
        weight_decay: Of groups with ``sphere=False`` only.
        sphere: Whether parameters are directions.

    References:
        Poggio & Liao (2020), section 6.1 (asks for it), equations 6 and 15.

    Example:
        >>> layer = torch.nn.Linear(3, 2, bias=False).double()
        >>> optim = SphereSGD(layer.parameters(), lr=0.1, rho=lambda t: 2.0 + t)
        >>> layer(torch.ones(1, 3).double()).sum().backward()
        >>> _ = optim.step()
        >>> [round(rho, 12) for rho in optim.norms()]
        [3.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        *,
        rho: float | NormSchedule | None = 1.0,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        sphere: bool = True,
    ) -> None:
        """Put directions on the spheres of the first step."""
        defaults = {
            "lr": lr,
            "rho": rho,
            "momentum": momentum,
            "nesterov": nesterov,
            "weight_decay": weight_decay,
            "sphere": sphere,
            "steps": 0,
        }
        super().__init__(params, defaults)
        if weight_decay and all(group["sphere"] for group in self.param_groups):
            _refuse_decay(weight_decay)

    def add_param_group(self, param_group: Group) -> None:
        """Add a group, and put its directions on the sphere of its first step."""
        on_sphere = param_group.get("sphere", self.defaults["sphere"])
        if on_sphere and "weight_decay" not in param_group:
            # The default is for groups off the sphere.
            param_group = {**param_group, "weight_decay": 0.0}
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            _check_group(group)
            if group["sphere"]:
                _project(group, 0)
        except (ConfigError, MeasurementError):
            self.param_groups.pop()
            raise

    def norms(self) -> tuple[float | None, ...]:
        r"""Return $\rho$ of every group, the product of norms; None off the sphere."""
        return tuple(
            math.prod(_lengths(group)) if group["sphere"] else None
            for group in self.param_groups
        )

    def state_dict(self) -> dict[str, Any]:
        """Return numbers and tensors; schedules are left out."""
        state = super().state_dict()
        for group in state["param_groups"]:
            if callable(group["rho"]):
                del group["rho"]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore numbers and tensors; keep the schedules of this optimizer.

        Directions are put on the spheres of the steps that were made, since adding
        their group may have moved loaded weights to those of the first.
        """
        saved = state_dict.get("param_groups") if isinstance(state_dict, dict) else None
        saved = saved or [{}]
        if any("sphere" not in group or "steps" not in group for group in saved):
            raise ConfigError(
                "the state is that of another optimiser, without sphere and steps: "
                "load one that SphereSGD saved"
            )
        own = [group["rho"] for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, rho in zip(self.param_groups, own, strict=True):
            group.setdefault("rho", rho)
            if group["sphere"]:
                _project(group, group["steps"], tolerance=_ROUNDINGS)

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], Any]) -> Any: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step; nothing is moved if a gradient, weight or norm is refused."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        plans = [(group, _plan(group)) for group in self.param_groups]
        for group, spheres in plans:
            for p, sphere in zip(group["params"], spheres, strict=True):
                if sphere is not None:
                    self._move_direction(p, *sphere, group)
                elif p.grad is not None:
                    self._move_plainly(p, group)
            group["steps"] += 1
        return loss

    def _move_direction(
        self, p: Tensor, length: float, radius: float, group: Group
    ) -> None:
        """Step along the sphere, project back, and carry the momentum along."""
        unit = p / length
        if p.grad is None:
            p.copy_(unit * radius)
            return
        pull = _tangent(length * p.grad, unit)
        along = self._with_momentum(p, pull, group)
        moved = unit - group["lr"] * along
        unit = moved / torch.linalg.vector_norm(moved)
        p.copy_(unit * radius)
        if group["momentum"]:
            kept = self.state[p]["momentum"]
            kept.copy_(_tangent(kept, unit))

    def _move_plainly(self, p: Tensor, group: Group) -> None:
        pull = p.grad
        assert pull is not None
        if group["weight_decay"]:
            pull = pull + group["weight_decay"] * p
        p.sub_(group["lr"] * self._with_momentum(p, pull, group))

    def _with_momentum(self, p: Tensor, pull: Tensor, group: Group) -> Tensor:
        if not group["momentum"]:
            return pull
        state = self.state[p]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(p)
        kept = state["momentum"].mul_(group["momentum"]).add_(pull)
        return pull + group["momentum"] * kept if group["nesterov"] else kept


def _tangent(vector: Tensor, unit: Tensor) -> Tensor:
    return vector - torch.sum(vector * unit) * unit


@torch.no_grad()
def _project(group: Group, step: int, tolerance: float = -1) -> None:
    """Scale directions to the sphere of a step.

    Those within ``tolerance`` roundings of it stay as they are, bit for bit.
    """
    for p, (length, radius) in zip(group["params"], _spheres(group, step), strict=True):
        if abs(length - radius) > tolerance * torch.finfo(p.dtype).eps * radius:
            p.copy_(p / length * radius)


def _plan(group: Group) -> Sequence[tuple[float, float] | None]:
    """Check a group, and return the norms of its directions before and after a step."""
    _check_group(group)
    _check_gradients(group)
    if not group["sphere"]:
        return [None] * len(group["params"])
    return _spheres(group, group["steps"] + 1)


def _spheres(group: Group, step: int) -> list[tuple[float, float]]:
    """Return the norm of each direction, and the norm that it should have at a step."""
    lengths = _lengths(group)
    if group["rho"] is None:
        return [(length, length) for length in lengths]
    radius = norm_at(group["rho"], step) ** (1 / len(lengths))
    return [(length, radius) for length in lengths]


def _lengths(group: Group) -> list[float]:
    """Return the norms of a group's parameters; refuse those without direction."""
    norms = [torch.linalg.vector_norm(p.detach()) for p in group["params"]]
    lengths = [float(length) for length in _to_floats(norms)]
    for k, length in enumerate(lengths):
        if not 0 < length < math.inf:
            held = "zero" if not length else "not finite"
            raise MeasurementError(
                f"{_name(group, k)} is {held} and has no direction: start from other "
                "weights, or put it in a group with sphere=False (sphere_groups does)"
            )
    return lengths


def _check_gradients(group: Group) -> None:
    places = [k for k, p in enumerate(group["params"]) if p.grad is not None]
    gradients = [group["params"][k].grad for k in places]
    for k, gradient in zip(places, gradients, strict=True):
        if gradient.is_sparse:
            raise MeasurementError(
                f"the gradient of {_name(group, k)} is sparse: use dense gradients"
            )
    sizes = _to_floats([torch.linalg.vector_norm(g) for g in gradients])
    for k, size in zip(places, sizes, strict=True):
        if not math.isfinite(size):
            raise MeasurementError(
                f"the gradient of {_name(group, k)} is not finite, or too large to "
                "square, and nothing was moved: lower lr, or clip gradients"
            )


def _to_floats(numbers: list[Tensor]) -> list[float]:
    """Copy numbers from their device, all at once where they are on one."""
    if len({(n.device, n.dtype) for n in numbers}) == 1:
        return torch.stack(numbers).tolist()
    return [float(n) for n in numbers]


def _check_group(group: Group) -> None:
    limits = {"lr": math.inf, "momentum": 1, "weight_decay": math.inf}
    for name, below in limits.items():
        value = group[name]
        single = isinstance(value, Tensor) and value.numel() == 1
        what = "learning rate lr" if name == "lr" else name
        check_number(what, value.item() if single else value, below=below)
    if group["nesterov"] and not group["momentum"]:
        raise ConfigError("nesterov looks along a momentum of 0: pass momentum as well")
    if not group["sphere"]:
        return
    if group["weight_decay"]:
        _refuse_decay(group["weight_decay"])
    if group["rho"] is not None:
        norm_at(group["rho"], group["steps"])
    for k, p in enumerate(group["params"]):
        if not p.is_floating_point():
            raise MeasurementError(
                f"{_name(group, k)} is of type {p.dtype}: directions are real, "
                "floating-point parameters"
            )


def _refuse_decay(value: Any) -> None:
    raise ConfigError(
        f"weight_decay is {value!r} for directions, whose norm is scheduled: pass rho "
        "instead, or a group with sphere=False"
    )


def _name(group: Group, k: int) -> str:
    names = group.get("param_names")
    known = f"{names[k]!r}" if names else f"number {k} of its group"
    return f"parameter {known}, of shape {tuple(group['params'][k].shape)},"
