"""Networks, rates and training of table 1."""

from dataclasses import dataclass

from theodolite.studies import CommittedRun

from ..shared.image_config import SMALL, ImageConfig

RUN = CommittedRun(
    "theodolite_papers.macdonald2023skip",
    "image_tables",
    # Rows carry their precision, and a cell names it.
    free=("n_seeds", "rates", "precision"),
)


@dataclass(frozen=True, kw_only=True)
class Config(ImageConfig):
    """Networks, rates and training of table 1."""


PRESETS = {
    "smoke": Config(n_seeds=2, samples=32, rates=(0.1, 0.05), epochs=3, **SMALL),
    "quick": Config(
        n_seeds=2, samples=240, rates=(0.1, 0.05), epochs=6, committed=True, **SMALL
    ),
    "paper": Config(n_seeds=10, device="cuda", precision="bf16"),
}
