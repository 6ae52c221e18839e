"""Write what README.md and docs/index.md show: `python docs/make_pictures.py [REPORT]`.

Its first code is run; the printed survey and advice are put into both pages, and the
advice is tried. The picture of the report needs Chromium and playwright; it is made if
a report is given.
"""

import io
import re
import shutil
import sys
from contextlib import redirect_stdout
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from theodolite import survey
from theodolite.figures import house_style

FOLDER = Path(__file__).parent / "pictures"
# Of the page, in pixels as the page counts them.
WIDTH, HEIGHT = 1200, 760


README = FOLDER.parents[1] / "README.md"
HOME = FOLDER.parent / "index.md"
STEPS = 400
# Paths of 30 layers on one line say no more than the first three.
_MANY = re.compile(r"(\['[^']+', '[^']+', '[^']+'), .*(?=\])")


def run_readme() -> tuple[dict[str, Any], str, str]:
    """Run the first two blocks; return their names, the survey and the advice."""
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)
    space: dict[str, Any] = {}
    said = []
    for block in blocks[:2]:
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(block, "README.md", "exec"), space)
        said.append(out.getvalue().strip())
    found, _, _ = said[0].partition("\n  stable rate")
    return space, found, _MANY.sub(r"\1, …", said[1])


def losses(model: Any, optimizer: Any, space: dict[str, Any]) -> list[float]:
    """Train a network of README.md, and return its losses."""
    curve = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = space["loss"](model(space["x"]), space["y"])
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve


def with_advice(space: dict[str, Any]) -> dict[str, Any]:
    """Return the names of README.md after its advice was run on a copy."""
    model = deepcopy(space["model"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    treated = {"model": model, "optimizer": optimizer, "inputs": space["x"]}
    torch.manual_seed(0)
    exec(space["result"].advice[0].code, treated)
    return treated


def readme() -> None:
    """Write the texts and pictures of the first screen of README.md."""
    space, found, advice = run_readme()
    treated = with_advice(space)
    data = (space["x"], space["y"])
    again = survey(treated["model"], data, loss=space["loss"], measures=("signal",))
    plain = deepcopy(space["model"])
    sgd = torch.optim.SGD(plain.parameters(), lr=0.05)
    curves = {
        "as it was": losses(plain, sgd, space),
        "with the advice": losses(treated["model"], treated["optimizer"], space),
    }
    gradients = {
        label: each.find("backward_rms").values()
        for label, each in zip(curves, (space["result"], again), strict=True)
    }
    _draw(curves, "step", "loss", "linear", "readme_losses.png")
    _draw(gradients, "block", "rms of the gradient", "log", "readme_gradients.png")
    ends = " and ".join(f"{curve[-1]:.3f}" for curve in reversed(curves.values()))
    for page in (README, HOME):
        _show(page, found, advice, ends)


def _show(page: Path, found: str, advice: str, ends: str) -> None:
    """Put the survey, its advice and the last losses into a page."""
    text = re.sub(
        r"(```text\n)✗?.*?(\n…\n```)",
        lambda m: m[1] + found + m[2],
        page.read_text(),
        count=1,
        flags=re.S,
    )
    text = re.sub(
        r"(# runs as it is\n```\n\n```text\n).*?(\n```)",
        lambda m: m[1] + advice + m[2],
        text,
        flags=re.S,
    )
    text = re.sub(
        r"(Losses with and without the advice: ).*?(?=\])", rf"\g<1>{ends}", text
    )
    page.write_text(text)


def _draw(curves: dict[str, Any], x: str, y: str, scale: Any, name: str) -> None:
    with house_style():
        figure = Figure(figsize=(5.0, 2.6), layout="constrained")
        axes = figure.subplots()
        for label, curve in curves.items():
            axes.plot(curve, label=label)
        axes.set(xlabel=x, ylabel=y, yscale=scale)
        axes.legend()
        figure.savefig(FOLDER / name, dpi=110, metadata={"Software": None})
    _few_colours(FOLDER / name)


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
    readme()
    if len(sys.argv) > 1:
        report(Path(sys.argv[1]))
