"""Depths, shortcut depths and training of figure 9."""

from dataclasses import dataclass

from ..shared.cifar_config import SMALL, CifarConfig, paper_config

# Shortcut depths in figure 9, and longer ones, which its caption mentions.
SHOWN = (1, 2, 3, 4)
LENGTHS = (*SHOWN, 6, 12)


@dataclass(frozen=True, kw_only=True)
class Config(CifarConfig):
    """Depths, shortcut depths and training of figure 9."""

    shortcuts: tuple[int, ...] = LENGTHS


PRESETS = {
    "smoke": Config(
        n_seeds=2, samples=320, depths=(14, 26), stages=1, epochs=1, **SMALL
    ),
    "quick": Config(
        n_seeds=2,
        samples=480,
        depths=(14, 26),
        stages=1,
        epochs=2,
        committed=True,
        **SMALL,
    ),
    "paper": paper_config(Config, shortcuts=LENGTHS),
}
