"""Closed forms and certified bounds at the weights of real networks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    Row,
    Rows,
    SystemBlueprint,
    named_rows,
    stream,
)

from .combine_lemmas import lemmas
from .combine_systems import looseness, systems
from .config import SCALES, Config, Instance, instance
from .measure import network_of

TINY = 1e-10


def kernels(config: Config) -> list[Row]:
    """Return certificates' numbers of residual networks, and of their rivals."""
    rows: list[Row] = []
    for trial in config.seeds:
        drawn = instance(config, trial)
        rows += _bounds(drawn, trial)
        rows += _grown(drawn, trial)
        rows += _rivals(config, drawn, trial)
    return rows


def _certify(network: Any, inputs: np.ndarray, cost: str, targets: Any) -> Any:
    import torch

    from theodolite.certificates import certificate

    return certificate(network, (torch.tensor(inputs), targets), cost)


def _bounds(drawn: Instance, trial: int) -> list[Row]:
    """Bound over kernel, and the gradient's square over what theorem 2.4 says."""
    network = network_of(drawn, trial)
    outputs = drawn.plan.shapes[-1][0]
    targets = {
        "cross_entropy": drawn.classes,
        "square": stream(trial, "targets").normal(size=(len(drawn.inputs), outputs)),
    }
    rows: list[Row] = []
    for cost, given in targets.items():
        found = _certify(network, drawn.inputs, cost, given)
        least = found.kernel_smallest
        share = found.kernel_error / least
        told = found.polyak * least
        ratio = named_rows(
            {"gradient_ratio": found.ratio / told},
            (found.ratio_error / told) + share * found.ratio / told,
            trial=trial,
            cost=cost,
        )
        met = found.applies("4.7") and found.applies("4.5")
        rows += [
            *ratio,
            *named_rows({"conditions_met": met}, 0.0, trial=trial, cost=cost),
        ]
        size = found.kernel_bound / least
        error = (share + TINY) * size
        rows += named_rows({"kernel_ratio": size}, error, trial=trial, cost=cost)
    return rows


def _grown(drawn: Instance, trial: int) -> list[Row]:
    """Follow the first layer's term as all weights grow."""
    rows: list[Row] = []
    for scale in SCALES:
        network = network_of(replace(drawn, scale=1.0), trial, scale)
        found = _certify(network, drawn.inputs, "cross_entropy", drawn.classes)
        labels = {"trial": trial, "scale": scale}
        first, own = float(found.terms[0]), float(found.own[0])
        # Singular values are right to rounding of the largest.
        top = np.linalg.norm(drawn.inputs, 2) / np.sqrt(drawn.eps)
        error = first * (TINY + 1e-14 * top / np.sqrt(own))
        rows += named_rows({"first_term": first}, error, **labels)
        least = found.kernel_smallest
        rows += named_rows({"least_eigenvalue": least}, found.kernel_error, **labels)
    return rows


def _rivals(config: Config, drawn: Instance, trial: int) -> list[Row]:
    """Equal samples; fewer parameters than outputs; a batch norm at the end."""
    rng = stream(config.seed, "rivals", trial)
    twice = np.concatenate([drawn.inputs[:1], drawn.inputs[:1]])
    same = _certify(network_of(drawn, trial), twice, "cross_entropy", [0, 0])
    few = replace(drawn, plan=_plan(2, AffineLayer(into=2, out=3)))
    small = _certify(
        network_of(few, trial), rng.normal(size=(4, 2)), "cross_entropy", [0, 1, 2, 0]
    )
    first, last = AffineLayer(into=6, out=4), AffineLayer(into=4, out=2)
    x = rng.normal(size=(3, 6))
    normed, bare = (
        _certify(
            network_of(replace(drawn, plan=_plan(6, first, *norm, last)), trial),
            x,
            "cross_entropy",
            [0, 1, 0],
        )
        for norm in ((BatchNormLayer(features=4, eps=1.0),), ())
    )
    found = {
        "dependent_over_rounding": abs(same.kernel_smallest) / same.kernel_error,
        "overfull_over_rounding": abs(small.kernel_smallest) / small.kernel_error,
        "term_before_norm": normed.terms[0],
        "term_without_norm": bare.terms[0],
    }
    return named_rows(found, 0.0, trial=trial)


def _plan(inputs: int, *layers: Any) -> SystemBlueprint:
    return SystemBlueprint(inputs=inputs, layers=layers)


_PARTS = {
    "lemmas": lemmas,
    "systems": systems,
    "kernels": kernels,
    "looseness": looseness,
}


def combine(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one part against theory."""
    part = _PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))
