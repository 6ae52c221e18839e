"""Gradient descent on norms and directions, of linear classifiers and of networks."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def objectives(
    loss: str,
    scale: "Tensor",
    direction: "Tensor",
    data: tuple["Tensor", "Tensor"],
    decay: float,
) -> "Tensor":
    """Return the objective of each classifier, one per row."""
    inputs, labels = data
    out = scale[:, None] * (inputs @ direction[..., None])[..., 0]
    if loss == "square":
        fit = ((out - labels) ** 2).sum(1)
    else:
        fit = (-labels * out).exp().sum(1)
    return fit + decay * scale**2


def descend_linear(
    loss: str,
    scale: "Tensor",
    direction: "Tensor",
    data: tuple["Tensor", "Tensor"],
    decay: float,
    rate: float,
    steps: int,
) -> tuple["Tensor", "Tensor"]:
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


Layers = list["Tensor"]


def forward(weights: Layers, inputs: "Tensor") -> "Tensor":
    """Return the outputs of ReLU networks, one per row, for a batch of inputs each."""
    h = inputs
    for w in weights[:-1]:
        h = (h @ w.mT).relu()
    return (h @ weights[-1].mT)[..., 0]


def descend(
    scale: "Tensor",
    weights: Layers,
    data: tuple["Tensor", "Tensor", "Tensor"],
    rate: float,
    steps: int,
    watch: Callable[[int, "Tensor", Layers, "Tensor"], None],
) -> tuple["Tensor", Layers]:
    """Descend by autodiff along the sphere, and retract after every step.

    The objective of each network is the sum of squares with decay on its norm. Networks
    lie along the first axis; ``data`` are inputs, labels and decay of each. ``watch``
    gets the step, norms, layers and outputs before each step, and at the end.
    """
    import torch

    inputs, labels, decay = data
    scale = scale.clone().requires_grad_()
    weights = [w.clone().requires_grad_() for w in weights]
    for step in range(steps + 1):
        outputs = forward(weights, inputs)
        watch(step, scale.detach(), [w.detach() for w in weights], outputs.detach())
        if step == steps:
            break
        error = scale[:, None] * outputs - labels
        loss = (error**2).sum() + (decay * scale**2).sum()
        gradients = torch.autograd.grad(loss, [scale, *weights])
        with torch.no_grad():
            scale -= rate * gradients[0]
            for w, g in zip(weights, gradients[1:], strict=True):
                along = (w * g).sum((1, 2), keepdim=True)
                w -= rate * (g - along * w)
                w /= w.pow(2).sum((1, 2), keepdim=True).sqrt()
    return scale.detach(), [w.detach() for w in weights]
