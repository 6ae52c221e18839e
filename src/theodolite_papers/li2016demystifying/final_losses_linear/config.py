"""Depths and rates of figure 7."""

from ..shared.final_losses.config import NETWORKS, RateConfig, cells

__all__ = ["PRESETS", "RateConfig", "cells"]

PRESETS = {
    "smoke": RateConfig(
        n_seeds=2,
        dataset="digits",
        networks=tuple(NETWORKS),
        depths=(6, 12, 18),
        steps=100,
        lowest=-3,
        rungs=3,
    ),
    "quick": RateConfig(
        n_seeds=6,
        networks=tuple(NETWORKS),
        depths=(6, 12, 24, 48),
        rungs=5,
        lowest=-3,
        committed=True,
    ),
    "paper": RateConfig(
        n_seeds=10,
        dataset="mnist",
        networks=tuple(NETWORKS),
        depths=(4, 6, 12, 18, 24, 36, 48, 72, 96),
    ),
}
