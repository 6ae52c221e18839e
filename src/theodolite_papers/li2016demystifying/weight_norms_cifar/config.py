"""Depths and training of figure 2."""

from dataclasses import dataclass

from ..shared.cifar_config import SMALL, CifarConfig

PAPER_EPOCHS = 200


@dataclass(frozen=True, kw_only=True)
class Config(CifarConfig):
    """Depths and training of figure 2; units of two layers, as in the paper."""

    shortcuts: tuple[int, ...] = (2,)


PRESETS = {
    "smoke": Config(
        n_seeds=2, samples=320, depths=(14, 26, 38), stages=1, epochs=2, **SMALL
    ),
    "quick": Config(
        n_seeds=3,
        samples=640,
        depths=(14, 26, 50),
        stages=1,
        epochs=3,
        committed=True,
        **SMALL,
    ),
    "paper": Config(
        n_seeds=3,
        device="cuda",
        depths=(8, 20, 38, 74, 110),
        epochs=PAPER_EPOCHS,
        precision="bf16",
    ),
}
