"""Tests of what drives depth: gradients by length of path, and losses on the way."""

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np

from theodolite.core import (
    Judgement,
    PredictedAndMeasured,
    ReadAs,
    Row,
    Rows,
    Test,
    above,
    below,
    inside,
    mean,
    measured,
    readings,
    undecided,
)

from .claims_tests import BOTH, LAYERS, NORMED, PARTS, Group, key_of
from .config import CLASSES
from .figure import groups, network_name, whole

# Takes the depth; returns the greatest length of a path that counts as shallow.
Split = Callable[[int], int]


def _half(depth: int) -> int:
    """Return the greatest length below half of the depth."""
    return (depth - 1) // 2


SPLITS: dict[str, Split] = {
    "paths below half of the depth against all others": _half,
    "paths that take no branch against all others": lambda depth: 1,
}


SPLIT_SOURCES = (
    "section 1: shallow networks, with depths lower than half-depth",
    "section 4.2: paths that skip, against those that do not",
)


def by_split(name: str, make: Callable[[Split, Group], Test]) -> Test:
    """Judge networks with norms in every training, for every split of the paths."""

    def test(both: PredictedAndMeasured) -> Judgement:
        listed = [
            ReadAs(f"{title}; {network_name(group)}", title, source, one)
            for (title, split), source in zip(
                SPLITS.items(), SPLIT_SOURCES, strict=True
            )
            for group in groups(both.measured)
            if group["norm"] in NORMED and group["family"] in LAYERS
            for one in [make(split, group)]
            if not one(both).missing
        ]
        if len(listed) < 2:
            return undecided(f"no network has {name}", missing=not listed)
        return readings(*listed)(both)

    return test


def becomes_dominant(split: Split, group: Group) -> Test:
    """Judge whether the deep gradient ends longer than the shallow one."""
    at = split(group["depth"])
    rows = measured("deep_over_shallow", split=at, **group).out_of(whole).log10()
    rows = rows.called("deep over shallow gradient")

    def test(both: PredictedAndMeasured) -> Judgement:
        steps = rows(both).levels("step")
        if not steps:
            return undecided("gradients by length were not read", missing=True)
        return inside(mean(rows.at(step=steps[-1])), above(0))(both)

    return test


def scales_grow(split: Split, group: Group) -> Test:
    """Judge whether scales grow while deep gradients dominate."""
    among = growth_under_deep_gradients(split)
    rows = measured("scale_growth", **group).out_of(among)
    return inside(mean(rows.called("growth where deep gradients dominate")), above(0))


def loss_before_depth(both: PredictedAndMeasured) -> Judgement:
    """Judge the loss at half of the rise in depth, of networks that become deeper."""
    listed = []
    for part in BOTH:
        rows = measured(f"loss_at_{part}").out_of(losses_at_depth(part))
        for group in groups(both.measured):
            here = rows.at(**group).called("loss over that of a guess")
            if group["family"] not in LAYERS or len(here(both)) < 2:
                continue
            for low, region in LOW.items():
                name = f"{low}; {PARTS[part]}; {network_name(group)}"
                what = f"Low is {low}, deep enough is half of the rise in depth."
                listed.append(ReadAs(name, what, "ours", inside(mean(here), region)))
    if len(listed) < 2:
        return undecided("no ensemble became deeper", missing=not both)
    return readings(*listed)(both)


LOW = {
    f"less than {name} of a guess's loss": below(share, source="ours", why=why)
    for name, share, why in (
        ("half", 0.5, "more of the loss is gone than is left"),
        ("a tenth", 0.1, "a tenth of the loss is left"),
    )
}


# Below this rise an ensemble has not become deeper.
RISE = 0.02


@cache
def losses_at_depth(part: str) -> Callable[[Rows], Rows]:
    """Return the loss over that of a guess once half of the rise in depth is made.

    Networks whose ensemble does not become deeper by ``RISE`` have no such row.
    """

    def among(rows: Rows) -> Rows:
        rows, table = whole(rows), []
        losses = {(key_of(r), r["step"]): r for r in rows.where(quantity="train_loss")}
        curves: dict[tuple, list[Row]] = {}
        for row in rows.where(quantity=part):
            curves.setdefault(key_of(row), []).append(row)
        for curve in curves.values():
            curve.sort(key=lambda row: row["step"])
            start, top = curve[0]["value"], max(row["value"] for row in curve)
            half = next(r for r in curve if r["value"] >= (start + top) / 2)
            loss = losses.get((key_of(half), half["step"]))
            if top - start > RISE and loss is not None and half["task"] in CLASSES:
                value = loss["value"] / math.log(CLASSES[half["task"]])
                labels = {"quantity": f"loss_at_{part}", "value": value}
                table.append({**half, **labels, "error": 1e-9})
        return Rows(table)

    return among


@cache
def growth_under_deep_gradients(split: Callable[[int], int]) -> Callable[[Rows], Rows]:
    """Return the mean change of the scale between readings where deep paths dominate.

    They dominate between two readings if the gradient along paths longer than the
    split is the longer one at both.
    """

    def among(rows: Rows) -> Rows:
        rows, ratios = whole(rows), {}
        for row in rows.where(quantity="deep_over_shallow"):
            if row["split"] == split(row["depth"]):
                ratios[key_of(row), row["step"]] = row["value"]
        curves: dict[tuple, list[Row]] = {}
        for row in rows.where(quantity="scale"):
            if (key_of(row), row["step"]) in ratios:
                curves.setdefault(key_of(row), []).append(row)
        table = []
        for key, curve in curves.items():
            changes = [
                b["value"] - a["value"]
                for a, b in pairwise(sorted(curve, key=lambda row: row["step"]))
                if min(ratios[key, a["step"]], ratios[key, b["step"]]) > 1
            ]
            if changes:
                value = {"quantity": "scale_growth", "value": float(np.mean(changes))}
                table.append({**curve[0], **value, "error": 1e-12})
        return Rows(table)

    return among
