"""Networks, rates and training of table 3."""

from dataclasses import dataclass

from ..shared.image_config import SMALL, ImageConfig


@dataclass(frozen=True, kw_only=True)
class Config(ImageConfig):
    """Networks, rates and training of table 3.

    Schedule and batch are those of PyTorch's example for ImageNet, which the appendix
    names; momentum and weight decay are the appendix's.
    """

    dataset: str = "imagefolder"
    classes: int = 1000
    blocks: tuple[int, ...] = (3, 4, 6, 3)
    block: str = "bottleneck"
    stem: str = "large"
    factor: float = 0.1
    batch_size: int = 256
    momentum: float = 0.9
    weight_decay: float = 1e-4
    padding: int = 16
    test_every: int = 1


_STAND_IN = {
    **SMALL,
    "classes": 10,
    "rates": (0.1,),
    "n_seeds": 1,
    "epochs": 3,
    "stem": "small",
}

PRESETS = {
    "smoke": Config(samples=32, **_STAND_IN),
    "quick": Config(samples=96, **_STAND_IN),
    "paper": Config(n_seeds=3, device="cuda", precision="bf16"),
}
