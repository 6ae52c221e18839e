"""The networks of figures 7 and 8, trained cell by cell."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows, ShortcutBlueprint

from ..least_squares import least_loss
from .config import NETWORKS, RateConfig
from .inputs import inputs
from .search import Search


def plan_of(config: RateConfig, cell: Mapping[str, Any]) -> ShortcutBlueprint:
    """Return the architecture of a cell."""
    plan = ShortcutBlueprint(
        width=config.width,
        depth=cell["depth"],
        mid=config.mid,
        **NETWORKS[cell["network"]],
    )
    # One matrix a unit leaves no middle.
    return plan.with_(mid="identity") if plan.shortcut == 1 else plan


def measure(
    config: RateConfig, cell: Mapping[str, Any], *, strategy: str = "auto"
) -> Rows:
    """Train one network at all its rates."""
    data = inputs(config)
    floor = least_loss(*data) if config.quantity == "excess" else 0.0
    search = Search(config, plan_of(config, cell), data, floor=floor, strategy=strategy)
    return Rows(search.run().rows(config.quantity))
