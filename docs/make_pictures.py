"""Make the pictures of README.md: `python docs/make_pictures.py [out/report.html]`.

The picture of the report needs Chromium and playwright; without a report to open only
that of a reading is made.
"""

import shutil
import sys
from pathlib import Path

import torch
from torch import nn

from theodolite.data import load
from theodolite.figures import house_style
from theodolite.instruments import spectral_density
from theodolite.training import Descent, train

FOLDER = Path(__file__).parent / "pictures"
# Of the page, in pixels as the page counts them.
WIDTH, HEIGHT = 1200, 760


def density() -> None:
    """Draw the spectral density of a network with batch norm after its training."""
    digits = load("digits")
    x = torch.tensor(digits.flat())
    y = torch.tensor(digits.labels).long()
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10)
    ).double()
    loss = nn.CrossEntropyLoss()
    train(model, (x, y), loss=loss, optimizer=Descent(lr=0.5), steps=100)
    reading = spectral_density(model, (x, y), loss=loss, norm_mode="batch")
    count = sum(parameter.numel() for parameter in model.parameters())
    figure = reading.plot(title=f"Hessian of a trained network, {count:,} eigenvalues")
    with house_style():
        figure.savefig(FOLDER / "density.png", dpi=130, metadata={"Software": None})


def report(page: Path) -> None:
    """Photograph the head of a report."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as chromium:
        browser = chromium.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        view = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        view.goto(page.resolve().as_uri())
        view.screenshot(path=FOLDER / "report.png")
        browser.close()
    _few_colours(FOLDER / "report.png")


def _few_colours(path: Path) -> None:
    """Keep 64 colours, which is enough for a page and a third of the bytes."""
    from PIL import Image

    with Image.open(path) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    density()
    if len(sys.argv) > 1:
        report(Path(sys.argv[1]))
