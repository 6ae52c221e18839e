"""Gradient descent on the norm with held outputs, and on one unit."""

from typing import Any

import numpy as np

from theodolite.core import Row, named_rows, stream

from ..shared.descent import descend
from ..shared.rows import limit
from .config import (
    DECAY,
    EQUILIBRIA,
    LABELS,
    OUTPUTS,
    START,
    TIMES,
    TORCH_DECAY,
    UNITS,
    Config,
    unit_data,
    unit_weights,
)

EPS = 1e-12


def held(config: Config) -> list[Row]:
    """Descend on the norm alone, with PyTorch's optimiser."""
    rows: list[Row] = []
    at_times = [_norms(OUTPUTS, LABELS, DECAY, rate) for rate in config.rates]
    for k, time in enumerate(TIMES):
        value, error = limit([norms[k] for norms in at_times])
        rows += named_rows({"held_norm": value}, error, time=time)
    cases: dict[str, tuple[Any, Any, float]] = {
        "held": (OUTPUTS, LABELS, DECAY),
        **{
            case: (products, np.ones(len(products)), decay)
            for case, (products, decay) in EQUILIBRIA.items()
        },
    }
    for case, (f, y, decay) in cases.items():
        rho = float(at_rest(f, y, decay))
        rows += named_rows({"equilibrium": rho}, EPS, case=case)
        f, y = np.array(f), np.array(y)
        pull = float((rho * f - y) @ f)
        numbers = {"rest_pull": pull, "rest_balance": pull + decay * rho}
        rows += named_rows(numbers, EPS, case=case, decayed=decay > 0)
    in_torch = float(at_rest(OUTPUTS, LABELS, 0.0, wd=TORCH_DECAY, mean=True))
    rows += named_rows({"equilibrium": in_torch}, EPS, case="torch")
    return rows + _noise(config)


def _norms(f: Any, y: Any, decay: float, rate: float) -> list[float]:
    import torch

    f, y = (torch.tensor(v, dtype=torch.float64) for v in (f, y))
    rho = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([rho], lr=rate)
    norms = []
    for step in range(1, round(max(TIMES) / rate) + 1):
        optimizer.zero_grad()
        (((rho * f - y) ** 2).sum() + decay * rho**2).backward()
        optimizer.step()
        if step in [round(t / rate) for t in TIMES]:
            norms.append(float(rho.detach()))
    return norms


def at_rest(
    f: Any, y: Any, decay: float, wd: float = 0.0, mean: bool = False
) -> np.ndarray:
    """Descend until norms stay where they are, one per row of labels."""
    import torch

    f, y = (torch.tensor(np.array(v), dtype=torch.float64) for v in (f, y))
    rho = torch.full(y.shape[:-1], START, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([rho], lr=0.2, weight_decay=wd)
    for _ in range(2000):
        optimizer.zero_grad()
        errors = (rho[..., None] * f - y) ** 2
        loss = (errors.mean(-1) if mean else errors.sum(-1)) + decay * rho**2
        loss.sum().backward()
        before = rho.detach().clone()
        optimizer.step()
        if float((rho.detach() - before).abs().max()) < 1e-15:
            break
    return rho.detach().numpy()


def _noise(config: Config) -> list[Row]:
    """Add noise to labels, and its mirror image so that its mean is zero."""
    f, y = np.array(OUTPUTS), np.array(LABELS)
    noise = 0.3 * stream(config.seed, "noise").normal(size=(config.n_seeds, len(f)))
    plain = float(at_rest(f, y, 0.0))
    shifts = at_rest(f, y + np.stack([noise, -noise]), 0.0) - plain
    rows: list[Row] = []
    for trial, pair in zip(config.seeds, shifts.T, strict=True):
        numbers = {"noise_shift": pair.mean(), "one_noise": pair[0]}
        rows += named_rows(numbers, EPS, trial=trial)
    return rows


def units(config: Config) -> list[Row]:
    """Train one ReLU unit under a fixed second layer, in every case at once."""
    paths = [_unit_path(config, rate) for rate in config.rates]
    rows: list[Row] = []
    for k, case in enumerate(UNITS):
        for name in ("peak", "end", "invariant"):
            value, error = limit([float(path[name][k]) for path in paths])
            # The first corrections still depend on the step at these rates.
            rows += named_rows({name: value}, error + 1e-6, case=case)
        rows += named_rows({"wrong_way": paths[-1]["wrong"][k]}, 0.0, case=case)
        drop, error = limit([float(path["peak"][k] - path["end"][k]) for path in paths])
        rows += named_rows({"drop": drop}, error + 1e-6, case=case)
    return rows


def _unit_path(config: Config, rate: float) -> dict[str, Any]:
    import torch

    count = len(UNITS)
    inputs = torch.zeros(count, 2, 2, dtype=torch.float64)
    labels = torch.zeros(count, 2, dtype=torch.float64)
    decay = torch.zeros(count, dtype=torch.float64)
    for k, case in enumerate(UNITS):
        x, y, wanted = unit_data(case)
        inputs[k, : len(x)], labels[k, : len(y)] = torch.tensor(x), torch.tensor(y)
        decay[k] = wanted
    weights = [torch.tensor(w).expand(count, *w.shape) for w in unit_weights()]
    scales, wrong = [], torch.zeros(count)
    rest: list[Any] = []

    def watch(step: int, rho: Any, layers: Any, f: Any) -> None:
        del layers
        if step:
            away, moved = rest[-1] - scales[-1], rho - scales[-1]
            wrong.add_((away * moved < 0) & (away.abs() > 1e-9))
        scales.append(rho.clone())
        rest.append((labels * f).sum(1) / (decay + (f * f).sum(1)))

    start = torch.full((count,), START, dtype=torch.float64)
    steps = round(config.horizon / rate)
    rho, layers = descend(start, weights, (inputs, labels, decay), rate, steps, watch)
    path = torch.stack(scales)
    sine = layers[0][:, 0, 1].abs()
    return {
        "peak": path.max(0).values,
        "end": rho,
        "invariant": rho**2 + 2 * sine.log(),
        "wrong": wrong,
    }
