"""Gradient descent on the norm and the direction of many linear classifiers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def objectives(
    loss: str,
    scale: "torch.Tensor",
    direction: "torch.Tensor",
    data: tuple["torch.Tensor", "torch.Tensor"],
    decay: float,
) -> "torch.Tensor":
    """Return the objective of each classifier, one a row."""
    inputs, labels = data
    out = scale[:, None] * (inputs @ direction[..., None])[..., 0]
    if loss == "square":
        fit = ((out - labels) ** 2).sum(1)
    else:
        fit = (-labels * out).exp().sum(1)
    return fit + decay * scale**2


def descend(
    loss: str,
    scale: "torch.Tensor",
    direction: "torch.Tensor",
    data: tuple["torch.Tensor", "torch.Tensor"],
    decay: float,
    rate: float,
    steps: int,
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Descend by autodiff along the sphere, and retract after every step."""
    import torch

    rho = scale.clone().requires_grad_()
    v = direction.clone().requires_grad_()
    for _ in range(steps):
        value = objectives(loss, rho, v, data, decay).sum()
        by_rho, by_v = torch.autograd.grad(value, [rho, v])
        with torch.no_grad():
            rho -= rate * by_rho
            v -= rate * (by_v - (v * by_v).sum(1, keepdim=True) * v)
            v /= v.norm(dim=1, keepdim=True)
    return rho.detach(), v.detach()
