"""Depths and rates of figure 8."""

from ..shared.final_losses.config import RateConfig, cells

__all__ = ["PRESETS", "RateConfig", "cells"]

NETWORKS = ("xavier", "orthogonal", "two_shortcut")
# Not in the paper: units of one matrix have no ReLU, units of three have two.
BESIDE = ("one_shortcut", "three_shortcut")
PRESETS = {
    "smoke": RateConfig(
        n_seeds=2,
        dataset="digits",
        samples=200,
        mid="relu",
        networks=NETWORKS,
        depths=(2, 4, 8),
        steps=100,
        lowest=-2,
        rungs=3,
        scouts=1,
        stride=2,
        reach=2,
    ),
    "quick": RateConfig(
        n_seeds=5,
        samples=300,
        mid="relu",
        networks=NETWORKS,
        depths=(4, 8, 16, 32),
        lowest=-3,
        rungs=4,
        scouts=1,
        stride=2,
        reach=2,
        dtype="float32",
        committed=True,
    ),
    "paper": RateConfig(
        n_seeds=10,
        device="cuda",
        dataset="mnist",
        mid="relu",
        networks=NETWORKS,
        depths=(2, 4, 8, 16, 24, 32, 48, 64),
        beside=BESIDE,
        beside_depths=(6, 12, 24, 33, 48, 63),
        scouts=2,
        dtype="float32",
    ),
}
