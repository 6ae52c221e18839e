"""Slow, dense, obviously right."""

import torch

from theodolite.instruments.model.objective import evaluate


def loss_gradient(model, batch, loss):
    """Return the flat gradient by one backward pass."""
    params = [p for p in model.parameters() if p.requires_grad]
    value = evaluate(model, batch, loss)
    parts = torch.autograd.grad(value, params, allow_unused=True)
    return torch.cat(
        [
            (torch.zeros_like(p) if g is None else g).reshape(-1)
            for p, g in zip(params, parts, strict=True)
        ]
    )


def finite_difference_hessian(model, batch, loss, step=1e-5):
    """Return the Hessian by central differences of the gradient, entry by entry.

    The mode of the model is taken as it is; its buffers may move.
    """
    columns = []
    for parameter in [p for p in model.parameters() if p.requires_grad]:
        flat = parameter.data.reshape(-1)
        for i in range(flat.numel()):
            start = flat[i].item()
            flat[i] = start + step
            up = loss_gradient(model, batch, loss)
            flat[i] = start - step
            down = loss_gradient(model, batch, loss)
            flat[i] = start
            columns.append((up - down) / (2 * step))
    return torch.stack(columns, dim=1)


def looped_hessian(model, batch, loss):
    """Return the Hessian by double backward, one row at a time."""
    params = [p for p in model.parameters() if p.requires_grad]
    value = evaluate(model, batch, loss)
    parts = torch.autograd.grad(value, params, create_graph=True)
    gradient = torch.cat([g.reshape(-1) for g in parts])
    rows = [
        torch.cat(
            [
                (torch.zeros_like(p) if g is None else g).reshape(-1)
                for p, g in zip(
                    params,
                    torch.autograd.grad(
                        entry, params, retain_graph=True, allow_unused=True
                    ),
                    strict=True,
                )
            ]
        )
        for entry in gradient
    ]
    return torch.stack(rows)


def looped_jacobian(model, inputs):
    """Return outputs by parameters, one backward pass a row."""
    params = [p for p in model.parameters() if p.requires_grad]
    rows = [
        torch.cat(
            [
                (torch.zeros_like(p) if g is None else g).reshape(-1)
                for p, g in zip(
                    params,
                    torch.autograd.grad(
                        entry, params, retain_graph=True, allow_unused=True
                    ),
                    strict=True,
                )
            ]
        )
        for entry in model(inputs).reshape(-1)
    ]
    return torch.stack(rows)


def looped_gauss_newton(model, batch, loss):
    """Return J' H J from the dense Jacobian and the loss's Hessian by outputs."""
    jacobian = looped_jacobian(model, batch[0])
    outputs = model(batch[0]).detach()
    curvature = torch.autograd.functional.hessian(
        lambda flat: loss(flat.reshape(outputs.shape), batch[1]), outputs.reshape(-1)
    )
    return jacobian.T @ curvature @ jacobian
