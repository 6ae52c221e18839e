"""Closed forms of theorem 2: condition numbers, and the picture's entries."""

from theodolite.core import Row, Rows, ShortcutBlueprint
from theodolite.theory import conditioning_at_zero, hessian_at_zero

from ..shared.problems import EPS, SETTINGS, entries, named
from .config import Config, dataset


def predict(config: Config) -> Rows:
    """Return Eqs 9 and 26 for every dataset, and the picture's closed form."""
    rows: list[Row] = []
    for trial in config.seeds:
        x, y = dataset(config, "random", trial)
        for setting, names in SETTINGS.items():
            plan = ShortcutBlueprint(width=config.width, depth=2, **names)
            condition = conditioning_at_zero(plan, x, y, quantile=0.0)
            error = EPS * config.width * condition.ratio**2
            values = {"condition": condition.ratio}
            rows += named(values, error, n=2, setting=setting, trial=trial)
    x, y = dataset(config, "picture", config.seed)
    for n in (1, 2, 3):
        matrix = hessian_at_zero(
            ShortcutBlueprint(width=2, depth=3 * n, shortcut=n), x, y
        )
        rows += entries(matrix, EPS * len(x), shortcut=n)
    return Rows(rows)
