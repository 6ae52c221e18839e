"""Numbers of paths and of equal products, as exact integers."""

from theodolite import theory
from theodolite.core import Row, Rows, named_rows

from ..shared.rows import by_length
from .config import NETWORKS, Config, blueprint


def predict(config: Config) -> Rows:
    """Return the counts of definitions 1 and 2 and lemma 1 for every network."""
    rows: list[Row] = []
    for network in NETWORKS:
        for depth in config.depths:
            rows += _of(network, depth)
    return Rows(rows)


def _of(network: str, depth: int) -> list[Row]:
    plan = blueprint(network, depth)
    labels = {"network": network, "depth": depth}
    if not plan.skip:
        count = theory.plain_path_count(depth, plan.width)
        values = {"total": count, "mass": plan.inputs * count}
        rows = named_rows(values, 0.0, **labels)
        return [{**row, "length": depth} for row in rows]
    counts = theory.path_counts(depth, plan.width)
    rows = named_rows({"total": sum(counts)}, 0.0, **labels)
    masses = theory.path_masses(depth, plan.width, plan.inputs)
    rows += by_length("mass", masses, 0.0, **labels)
    if plan.unique:
        repeats = theory.configuration_repeats(
            depth, plan.width, plan.inputs, plan.unique
        )
        rows += by_length("repeats", repeats, 0.0, **labels)
    return rows
