"""Where gradient descent of linear classifiers ends, by where it starts."""

from functools import lru_cache

import numpy as np

from theodolite.core import Row, named_rows

from ..shared.linear_descent import descend
from ..shared.rows import limit
from .config import SETTINGS, STARTS, Config, data, directions

_MOST_STEPS, _AT_REST = 10_000, 1e-7


def ends(config: Config) -> list[Row]:
    """Descend from every start, with decay and without."""
    rows: list[Row] = []
    for shape, loss, decay in SETTINGS:
        found = final_weights(config, shape, loss, decay)
        labels = {"shape": shape, "loss": loss, "decay": decay}
        for trial, of_starts in zip(config.seeds, found, strict=True):
            apart = of_starts[:, None] - of_starts[None]
            size = float(np.linalg.norm(of_starts, axis=1).max())
            spread = float(np.linalg.norm(apart, axis=2).max()) / size
            rows += named_rows({"spread": spread}, 1e-9, trial=trial, **labels)
    return [*rows, *_norms_without_decay(config), *_from_zero(config)]


@lru_cache(maxsize=8)
def final_weights(config: Config, shape: str, loss: str, decay: float) -> np.ndarray:
    """Return the last weights by trial and start."""
    rate = config.rates[0]
    return _descend(config, shape, loss, decay, rate, round(config.end / rate))


def _descend(
    config: Config, shape: str, loss: str, decay: float, rate: float, steps: int
) -> np.ndarray:
    import torch

    drawn = [data(config, shape, trial) for trial in config.seeds]
    x, y = (
        torch.tensor(np.repeat([d[k] for d in drawn], len(STARTS), axis=0))
        for k in (0, 1)
    )
    scale = torch.tensor(STARTS * config.n_seeds, dtype=torch.float64)
    found = [directions(config, shape, trial) for trial in config.seeds]
    v = torch.tensor(np.concatenate(found))
    rho, v = descend(loss, scale, v, (x, y), decay, rate, steps)
    return (rho[:, None] * v).numpy().reshape(config.n_seeds, len(STARTS), -1)


def _norms_without_decay(config: Config) -> list[Row]:
    """Return norms at the horizon as steps vanish, of data that leave weights open."""
    case: tuple[str, str, float] = ("wide", "square", 0.0)
    paths = [
        np.linalg.norm(
            _descend(config, *case, rate, round(config.horizon / rate)), axis=2
        )
        for rate in config.rates
    ]
    rows: list[Row] = []
    for i, trial in enumerate(config.seeds):
        for start in range(len(STARTS)):
            value, error = limit([float(norms[i, start]) for norms in paths])
            labels = {"shape": "wide", "loss": "square", "decay": 0.0}
            found = {"end_norm": value}
            rows += named_rows(found, error + 1e-9, trial=trial, start=start, **labels)
    return rows


def _from_zero(config: Config) -> list[Row]:
    """Descend on plain weights from close to zero, without decay."""
    import torch

    drawn = [data(config, "wide", trial) for trial in config.seeds]
    x, y = (torch.tensor(np.array([d[k] for d in drawn])) for k in (0, 1))
    starts = [directions(config, "wide", trial)[0] for trial in config.seeds]
    w = torch.tensor(1e-6 * np.array(starts), requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.2)
    for _ in range(_MOST_STEPS):
        optimizer.zero_grad()
        errors = (x @ w[..., None])[..., 0] - y
        (errors**2).sum().backward()
        if w.grad is not None and float(w.grad.norm()) < _AT_REST:
            break
        optimizer.step()
    rows: list[Row] = []
    w = w.detach()
    found = w.norm(dim=1), ((x @ w[..., None])[..., 0] - y).norm(dim=1)
    for trial, norm, left in zip(config.seeds, *found, strict=True):
        # The start is not zero, and what it leaves outside of the data's span stays.
        rows += named_rows({"plain_norm": norm, "plain_loss": left}, 1e-6, trial=trial)
    return rows
