"""Weight norm, batch norm and convolutions of PyTorch, by autodiff."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import MeasurementError, Row, Rows, named_rows

from .config import BATCH, EPS, GAIN, KERNELS, LENGTHS, Config, regression

TINY = 1e-11


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one kind of layer."""
    if cell["part"] == "convolution":
        return Rows(_convolutions(config))
    rows: list[Row] = [] if cell["part"] == "weight norm" else _jacobian()
    for trial in config.seeds:
        if cell["part"] == "weight norm":
            rows += _weight_norm(config, trial)
        else:
            rows += _batch_norm(config, trial)
    return Rows(rows)


def _weight_norm(config: Config, trial: int) -> list[Row]:
    import torch
    from torch.nn.utils.parametrizations import weight_norm

    x, y, unit, probe = (torch.tensor(a) for a in regression(config, trial))
    rows: list[Row] = []
    for length in LENGTHS:
        layer = weight_norm(torch.nn.Linear(len(unit), 1, bias=False).double())
        made: Any = layer.parametrizations
        gain, vector = made["weight"].parameters()
        with torch.no_grad():
            gain.fill_(GAIN)
            vector.copy_(length * unit[None])
        ((layer(x)[:, 0] - y) ** 2).sum().backward()
        by_gain, by_vector = gain.grad, vector.grad
        if by_gain is None or by_vector is None:
            raise MeasurementError("the layer has no gradients: enable them")
        moved = -by_vector[0]
        numbers = {
            "gain_speed": -by_gain.sum(),
            "vector_speed": moved @ probe,
            "vector_growth": moved @ unit,
        }
        rows += named_rows(numbers, TINY, trial=trial, length=length)
    return [*rows, *_plain(x, y, unit, trial)]


def _plain(x: Any, y: Any, unit: Any, trial: int) -> list[Row]:
    """Compare plain descent on weights with the speeds of norm and unit vector."""
    import torch

    w = (GAIN * unit).requires_grad_()
    (g,) = torch.autograd.grad(((x @ w - y) ** 2).sum(), w)
    speed = -g
    pair: Any = torch.autograd.functional.jvp(lambda a: a / a.norm(), w.detach(), speed)
    turned = pair[1]
    across = speed - unit * (unit @ speed)
    # With weight norm the norm moves by the radial part, the unit by GAIN times the
    # tangential one, and the weights by what both make of them.
    made = unit * (unit @ speed) + GAIN * (GAIN * across)
    gaps = {
        "unprojected_gap": (turned - speed / GAIN).norm() / turned.norm(),
        "projected_gap": (turned - across / GAIN).norm() / turned.norm(),
        "plain_gap": (made - speed).norm() / speed.norm(),
    }
    return named_rows(gaps, TINY, trial=trial)


def _jacobian() -> list[Row]:
    import torch

    x = torch.tensor(BATCH, dtype=torch.float64)

    def normalise(batch: Any) -> Any:
        return torch.nn.functional.batch_norm(
            batch[:, None], None, None, training=True, eps=EPS
        )[:, 0]

    jacobian: Any = torch.autograd.functional.jacobian(normalise, x)
    rows: list[Row] = []
    for (i, j), value in np.ndenumerate(jacobian.numpy()):
        rows += named_rows({"jacobian": value}, 1e-13, row=i, column=j)
    return rows


def _batch_norm(config: Config, trial: int) -> list[Row]:
    """Differentiate a batch-normalised layer, and scale each of its rows."""
    import torch

    x, y, *_ = (torch.tensor(a) for a in regression(config, trial))
    torch.manual_seed(trial)
    first = torch.nn.Linear(config.features, config.units, bias=False).double()
    norm = torch.nn.BatchNorm1d(config.units, affine=False, eps=1e-30).double()
    last = torch.nn.Linear(config.units, 1, bias=False).double()
    hidden = norm(first(x))
    loss = ((last(hidden.relu())[:, 0] - y) ** 2).sum()
    (g,) = torch.autograd.grad(loss, first.weight)
    w = first.weight.detach()
    factors = torch.linspace(0.5, 3.0, config.units, dtype=torch.float64)
    with torch.no_grad():
        first.weight.mul_(factors[:, None])
        scaled = norm(first(x))
    speed = -g / w.norm()
    units = w / w.norm(dim=1, keepdim=True)
    xh = hidden.detach()[:, 0]
    shape = torch.outer(xh, xh)
    eye = torch.eye(len(xh), dtype=torch.float64)
    numbers = {
        "row_pull": ((w * g).sum(1).abs() / (w.norm(dim=1) * g.norm(dim=1))).max(),
        "activation_change": (scaled - hidden.detach()).abs().max(),
        "activation_norm_gap": (xh.norm() - len(xh) ** 0.5).abs(),
        "invariant_gap": ((w * speed).sum() / (w.norm() * speed.norm())).abs(),
        "frobenius_over_rows": units.norm() / config.units,
        "frobenius_over_root": units.norm() / config.units**0.5,
        "projector_gap": _idempotent(eye - shape),
        "projector_over_n_gap": _idempotent(eye - shape / len(xh)),
    }
    return named_rows(numbers, TINY, trial=trial) + _of_units(config, trial)


def _of_units(config: Config, trial: int) -> list[Row]:
    """Compare the Jacobian of several units with its blocks, and as printed.

    The printed product of all entries needs as many units as samples.
    """
    import torch

    x, *_ = (torch.tensor(a) for a in regression(config, trial))
    n = config.features  # as many samples as units
    x = x[:n]

    def normalise(batch: Any) -> Any:
        return torch.nn.functional.batch_norm(batch, None, None, training=True, eps=EPS)

    jacobian: Any = torch.autograd.functional.jacobian(normalise, x)
    xh, rate = normalise(x), (x.var(0, unbiased=False) + EPS) ** -0.5
    eye, ones = torch.eye(n, dtype=torch.float64), torch.full_like(x.T @ x, 1 / n)
    blocks, printed = torch.zeros_like(jacobian), torch.zeros_like(jacobian)
    for d in range(n):
        shape = eye - torch.outer(xh[:, d], xh[:, d]) / n
        blocks[:, d, :, d] = rate[d] * (shape - ones)
        printed[:, d, :, d] = rate[d] * (eye - xh.T * xh / n)
    gaps = {
        "blocks_gap": (jacobian - blocks).abs().max(),
        "product_gap": (jacobian - printed).abs().max(),
    }
    return named_rows(gaps, TINY, trial=trial)


def _idempotent(matrix: Any) -> Any:
    return (matrix @ matrix - matrix).norm() / matrix.norm()


def _convolutions(config: Config) -> list[Row]:
    """Stretch unit images by kernels of norm one."""
    import torch

    rows: list[Row] = []
    for kernel in KERNELS:
        for side in config.image:
            weights = torch.full((1, 1, kernel, kernel), 1 / kernel).double()
            image = torch.full((1, 1, side, side), 1 / side).double()
            out = torch.nn.functional.conv2d(image, weights, padding=kernel // 2)
            labels = {"kernel": kernel, "side": side}
            rows += named_rows({"stretch": out.norm()}, TINY, **labels)
            rows += named_rows(
                {"stretch_over_bound": out.norm() / kernel}, TINY, **labels
            )
    return rows
