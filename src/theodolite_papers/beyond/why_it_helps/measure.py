"""Measure spectra at the start and training losses, one intervention at a time."""

from theodolite import networks
from theodolite.core import Cell, Rows, TwoBlockBlueprint
from theodolite_papers.macdonald2023skip.shared.spectra import (
    curve_rows,
    descend,
    few_images,
    spectrum_rows,
)

from .config import ARCHITECTURES, VARIANTS, Config


def measure(config: Config, cell: Cell) -> Rows:
    """Train one network; networks of a trial share initial weights and images."""
    plan = TwoBlockBlueprint(
        **ARCHITECTURES[cell["dataset"]], **VARIANTS[cell["variant"]]
    )
    network = networks.build(plan, seed=cell["trial"], device=config.device)
    drawn = few_images(cell["dataset"], config.samples, seed=cell["trial"])
    descent = descend(
        network,
        drawn.images,
        drawn.labels,
        rate=config.rate,
        steps=config.steps,
        spectra_at=(0,),
        samples=config.block_samples,
    )
    scale = VARIANTS[cell["variant"]]["added"]
    rows = [*spectrum_rows(descent), *curve_rows(descent)]
    kept = ("mean", "smallest", "loss")
    return Rows({**row, "scale": scale} for row in rows if row["quantity"] in kept)
