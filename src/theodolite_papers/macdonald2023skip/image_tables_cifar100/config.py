"""Networks, rates and training of table 2."""

from dataclasses import dataclass

from ..shared.image_config import SMALL, ImageConfig


@dataclass(frozen=True, kw_only=True)
class Config(ImageConfig):
    """Networks, rates and training of table 2."""

    dataset: str = "cifar100"
    classes: int = 100


_STAND_IN = {**SMALL, "classes": 10, "rates": (0.1,), "n_seeds": 1, "epochs": 3}

PRESETS = {
    "smoke": Config(samples=32, **_STAND_IN),
    "quick": Config(samples=96, **_STAND_IN),
    "paper": Config(n_seeds=10, device="cuda", precision="bf16"),
}
