"""Run networks once, record their gates, and list all of their paths."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from theodolite.core import PathBlueprint, Row, Rows, named_rows

from ..shared.enumeration import (
    Paths,
    Recorded,
    built,
    coin_outputs,
    enumerate_paths,
    propagated,
    recorded,
)
from ..shared.rows import EPS
from .config import GATE, Config, blueprint, inputs


@lru_cache(maxsize=1)  # `combine` needs it right after, in the same cell
def run(
    config: Config, network: str, depth: int, trial: int
) -> tuple[PathBlueprint, np.ndarray, np.ndarray, Recorded]:
    """Return blueprint, weights and inputs of a cell, and the record of one pass."""
    plan = blueprint(network, depth)
    x = inputs(config, plan, trial)
    module = built(plan, seed=trial, device=config.device)
    weights = module.weights.detach().cpu().numpy()
    return plan, weights, x, recorded(module, x)


def listed(
    plan: PathBlueprint, seen: Recorded, gates: list[np.ndarray] | None = None
) -> Paths:
    """List all paths of a network, with the gates of one sample."""
    return enumerate_paths(
        seen.matrices,
        gates=gates,
        indices=plan.indices if plan.unique else None,
        unique=plan.unique or 1,
        skip=plan.skip,
    )


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """List the paths of a network, and compare their sum with its output."""
    if cell["network"] in ("coins", "plain_coins"):
        return Rows()
    plan, _, x, seen = run(config, cell["network"], cell["depth"], cell["trial"])
    rows = _sums(plan, x, seen)
    paths = listed(plan, seen)
    lengths = range(1, plan.depth + 1) if plan.skip else (plan.depth,)
    for length in lengths:
        some = paths.of_length(length)
        rows += named_rows({"mass": len(some)}, 0.0, length=length)
        if plan.unique:
            repeats = some.repeats(plan.inputs, plan.unique)
            total = repeats.sum(axis=1)
            counts = {
                "repeats_least": total.min(),
                "repeats_most": total.max(),
                "repeats_spread": np.ptp(total),
            }
            rows += named_rows(counts, 0.0, length=length)
            rows += named_rows(_second_moments(repeats), 4 * EPS, length=length)
    rows += named_rows({"total": len(paths) / plan.inputs}, 0.0)
    if plan.unique and cell["network"] != "uneven":
        rows += named_rows(_correlations(paths, plan), 8 * EPS)
    return Rows(rows)


def _sums(plan: PathBlueprint, x: np.ndarray, seen: Recorded) -> list[Row]:
    """Compare outputs with sums over paths, with their gates and without."""
    gaps = np.zeros((len(x), 3))
    means, opened = np.zeros(len(x)), np.zeros(len(x))
    for sample, point in enumerate(x):
        gates = [gate[sample] for gate in seen.gates]
        paths = listed(plan, seen, gates)
        terms, free = paths.terms(point), paths.terms(point, gated=False)
        scale = np.abs(free).sum()
        means[sample] = np.sum(GATE**paths.length * free)
        opened[sample] = np.count_nonzero(paths.open) / plan.inputs
        gaps[sample, 0] = abs(terms.sum() - seen.output[sample]) / scale
        gaps[sample, 1] = abs(free.sum() - seen.output[sample]) / scale
        if plan.skip:
            lengths = np.bincount(paths.length, terms, plan.depth + 1)[1:]
            other = propagated(seen.matrices, gates, point)
            gaps[sample, 2] = np.abs(lengths - other).max() / scale
    worst = gaps.max(axis=0)
    named = {
        "output_gap": worst[0],
        "ungated_gap": worst[1],
        "coefficient_gap": worst[2],
    }
    signs = {
        "negative_outputs": np.count_nonzero(seen.output < 0),
        # Take one of each pair of opposite inputs: of both, half would be negative.
        "negative_means": np.mean(means[: len(x) // 2] < 0),
        "open_paths": opened.mean(),
    }
    rounding = EPS * len(listed(plan, seen)) ** 0.5
    return named_rows(named, rounding) + named_rows(signs, 0.0)


def _second_moments(repeats: np.ndarray) -> dict[str, float]:
    r"""What $E\xi^2$ is of products that all occur, beside its bounds."""
    total, inputs = repeats.sum(axis=1), repeats.shape[1]
    if total.min() == 0:
        return {}
    # Averages over these points have the second moments of independent inputs.
    points = np.sqrt(inputs) * np.concatenate([np.eye(inputs), -np.eye(inputs)])
    moments = np.mean((repeats @ points.T) ** 2, axis=1)
    share = moments / total**2
    return {
        "share_least": share.min(),
        "share_most": share.max(),
        "above_floor": (share - 1 / inputs).min(),
        "below_ceiling": (1 - share).min(),
        "over_norm": (moments * np.sqrt(inputs) / total).min(),
        "over_square": (share * inputs).min(),
    }


def _correlations(paths: Paths, plan: PathBlueprint) -> dict[str, float]:
    r"""Correlations of the $\tilde x$ of all products of all lengths."""
    vectors = np.concatenate(
        [
            paths.of_length(length).repeats(plan.inputs, plan.unique or 1)
            for length in range(1, plan.depth + 1)
        ]
    ).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    correlations = vectors @ vectors.T
    # Dependent inputs, every second of them the first with its sign turned.
    turned = np.where(np.arange(plan.inputs) % 2, -1.0, 1.0)
    return {
        "correlation_least": correlations.min(),
        "dependent_over_floor": ((vectors @ turned) ** 2).max(),
    }


def coin_means(plan: PathBlueprint, x: np.ndarray, seen: Recorded) -> np.ndarray:
    """Return the mean output over all states of the gates, each an independent coin."""
    outputs, chances = coin_outputs(seen.matrices, x, chance=GATE, skip=plan.skip)
    return chances @ outputs
