"""Condition numbers of linear 1-shortcut networks at zero, from the closed form."""

from theodolite.core import Row, Rows, ShortcutBlueprint
from theodolite.theory import conditioning_at_zero

from ..shared.problems import named
from .config import Config, dataset


def predict(config: Config) -> Rows:
    """Return condition numbers of linear 1-shortcut networks at zero."""
    rows: list[Row] = []
    for trial in config.seeds:
        x, y = dataset(config, trial)
        for depth in config.depths:
            plan = ShortcutBlueprint(width=config.width, depth=depth, shortcut=1)
            ratio = conditioning_at_zero(plan, x, y).ratio
            rows += named({"ratio": ratio}, 1e-10 * ratio, trial=trial, depth=depth)
    return Rows(rows)
