"""Every kind of reading is drawn, printed on a screen and shown in a notebook."""

import dataclasses
from html.parser import HTMLParser
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from tests.figures.checks import check
from tests.studies.looks import described
from theodolite import instruments, paths, training
from theodolite.core import (
    ConfigError,
    Reading,
    Rows,
    ShortcutBlueprint,
    Status,
    UnknownNameError,
)
from theodolite.figures import draw_grid, draw_reading, save

SCALED, UP_TO = "linear-linear value over its own size | ", "| fraction up to here"
MATRIX = ["4.8×4", "linear-linear column | row", "linear-linear  | entry"]
# How each kind is drawn: size in inches, then scales and labels of each panel.
KINDS = {
    "Blocks": ["6.2×1.82", "linear-linear trace | "],
    "ClassifierNorms": [
        "6.6×3.2",
        "linear-linear layer | norm of the layer",
        f"linear-linear margin of the normalised network {UP_TO}",
    ],
    "Collapse": ["7×3.4", "linear-linear  | ", "linear-linear cosine | share of pairs"],
    "Condition": ["5.2×2.9", SCALED],
    "DenseHessian": MATRIX,
    "DenseTangentKernel": MATRIX,
    "Diagonal": [
        "6.6×3.2",
        "linear-linear entry, in the order of parameters | diagonal",
        "linear-linear rank | ",
    ],
    "ExtremeEigenvalues": ["5.2×3.4", "linear-linear rank from its end | eigenvalue"],
    "Index": ["5.2×2.9", SCALED],
    "PathEnsemble": ["6.6×3.6", "linear-linear path length | share of energy"],
    "SharpnessAlong": ["6×3.2", "linear-linear step | largest eigenvalues"],
    "SingularValues": [
        "6.6×3.2",
        "linear-linear position | singular value",
        f"linear-linear singular value {UP_TO}",
    ],
    "SpectralDensity": [
        "6.6×3.2",
        "linear-log eigenvalue | density, kernel of 0.28",
        f"linear-linear eigenvalue {UP_TO}",
    ],
    "Spectrum": ["6.6×3.4", "linear-linear rank | eigenvalue"],
    "Trace": ["5.2×2.9", SCALED],
    "Trajectory": ["6×3.2", "linear-linear step | loss"],
}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return x + torch.relu(self.layer(x))


def measured():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), Block(), nn.Linear(4, 3)).double()
    x, y = torch.randn(24, 3).double(), torch.arange(24) % 3
    loss, mode = {"loss": nn.CrossEntropyLoss()}, {"norm_mode": "eval"}
    both = loss | mode
    probe = instruments.sharpness_along(model, (x, y), k=2, **both)
    probe(0)
    probe(1)
    yield probe.reading()
    for name in ("spectrum", "extreme_eigenvalues", "trace", "condition", "index"):
        yield getattr(instruments, name)(model, (x, y), **both)
    yield instruments.diagonal(model, (x, y), **both)
    yield instruments.hessian(model, (x, y), **both)
    yield instruments.spectral_density(
        model, (x, y), method="products", n_probes=2, steps=8, grid=32, **both
    )
    yield instruments.tangent_kernel(model, x[:4], **mode)
    yield instruments.singular_values(model, x, block="1", **mode)
    yield instruments.collapse(model, (x, y), **mode)
    yield instruments.by_block(instruments.trace, model, (x, y), **both)
    chain = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3)).double()
    yield instruments.classifier_norms(chain, (x, y), **mode)
    yield paths.path_ensemble(model, (x, y), **both)
    descent = training.Descent(lr=0.1)
    yield training.train(model, (x, y), optimizer=descent, steps=100, **loss)


@pytest.fixture(scope="module")
def readings():
    return {type(reading).__name__: reading for reading in measured()}


@pytest.fixture(scope="module")
def grid():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    axes = {"seed": range(2), "lr": [0.01, 0.1, 50.0], "depth": [2, 4]}
    blueprint = ShortcutBlueprint(width=2, depth=2)
    with pytest.warns(training.GridWarning, match="diverged"):
        return training.train_grid(
            blueprint, data, axes, steps=20, strategy="plain", jobs=0
        )


def test_no_kind_is_forgotten(readings):
    assert set(readings) == set(KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_reading_fits_a_screen_and_a_notebook(readings, kind):
    text = repr(readings[kind])
    assert text == str(readings[kind])
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(kind)
    page = readings[kind]._repr_html_()
    well_formed(page)
    assert page.count("data:image/png;base64,iVBOR") == 1
    assert readings[kind].plot()._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_reading_is_drawn(readings, kind):
    figure = readings[kind].plot()
    assert kind in figure.get_suptitle()
    assert described(figure) == KINDS[kind]
    assert any(panel.lines or panel.images or panel.patches for panel in figure.axes)
    assert check(figure) == []


def shown(figure):
    """Return the ordinates of all lines, panel after panel."""
    lines = [line for panel in figure.axes for line in panel.lines]
    return [np.asarray(line.get_ydata(), float) for line in lines]


@pytest.mark.parametrize(
    ("kind", "quantity"),
    [
        ("Spectrum", "eigenvalues"),
        ("ExtremeEigenvalues", "eigenvalues"),
        ("SharpnessAlong", "eigenvalues"),
        ("SpectralDensity", "cdf"),
        ("SingularValues", "cdf"),
        ("Diagonal", "diagonal"),
        ("Trajectory", "loss"),
    ],
)
def test_what_is_drawn_is_what_was_measured(readings, kind, quantity):
    values = np.asarray(getattr(readings[kind], quantity))
    wanted = values[:, 0] if values.ndim == 2 else values
    drawn = shown(readings[kind].plot())
    assert any(np.array_equal(y, wanted) for y in drawn)


def test_errors_are_drawn(readings):
    reading = readings["ExtremeEigenvalues"]
    bars = [path for c in reading.plot().axes[0].collections for path in c.get_paths()]
    assert len(bars) == len(reading.eigenvalues) + len(reading.smallest)
    assert readings["SpectralDensity"].plot().axes[0].collections  # its band


def test_a_reading_that_is_not_trusted_says_so(readings):
    broken = dataclasses.replace(readings["Spectrum"], status=Status.NONFINITE)
    assert "not trusted: nonfinite" in broken.plot().get_suptitle()
    assert broken.plot(title="mine").get_suptitle() == "mine"


def test_a_run_that_diverged_has_a_mark(readings):
    lost = dataclasses.replace(readings["Trajectory"], diverged_at=50)
    (panel,) = lost.plot().axes
    assert [
        line.get_xdata()[0] for line in panel.lines if line.get_marker() == "x"
    ] == [50]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Strange(Reading):
    dims: ClassVar = {
        "levels": ("layer",),
        "table": ("row", "column"),
        "number": (),
        "empty": ("nothing",),
    }
    error_of: ClassVar = {"levels": "spread"}
    levels: np.ndarray
    spread: float
    table: np.ndarray
    number: float
    empty: tuple = ()

    def coordinates(self):
        return {**super().coordinates(), "layer": ["first", "last"]}


def test_a_kind_that_nobody_knows_is_drawn():
    reading = Strange(
        levels=np.array([1.0, 2.0]), spread=0.1, table=np.eye(3), number=7.0,
        status=Status.EXACT, norm_mode="eval",
    )  # fmt: skip
    figure = reading.plot()
    levels, table, number = figure.axes[:3]
    assert levels.get_ylabel() == "levels"
    assert [label.get_text() for label in levels.get_xticklabels()] == ["first", "last"]
    assert np.array_equal(table.images[0].get_array(), np.eye(3))
    assert "7" in [text.get_text() for text in number.texts]
    assert save(figure, "strange", ["svg"])["strange.svg"]


def test_what_is_no_reading_is_refused():
    with pytest.raises(ConfigError, match=r"reading is .*: pass Reading"):
        draw_reading({})


def test_a_grid_is_a_map_with_what_diverged(grid):
    figure = grid.plot()
    panel = figure.axes[0]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("lr", "depth")
    image = np.asarray(panel.images[0].get_array())
    assert np.array_equal(image[0, :2], np.min(grid.final_loss[:, :2, 0], axis=0))
    (crosses,) = [line for line in panel.lines if line.get_marker() == "x"]
    assert set(crosses.get_xdata()) == {2}


def test_a_grid_is_a_line_along_one_axis(grid):
    figure = draw_grid(grid, x="depth", y="lr")
    assert figure.axes[0].get_xlabel() == "depth"
    one = dataclasses.replace(
        grid, axes={**grid.axes, "depth": (2,)}, rows=grid.rows.where(depth=2)
    )
    panel = one.plot().axes[0]
    assert panel.get_ylabel() == "median final loss"
    assert "diverged" in [text.get_text() for text in panel.get_legend().get_texts()]
    with pytest.raises(UnknownNameError, match="unknown axis 'width'"):
        grid.plot(x="width")
    with pytest.raises(ConfigError, match="named twice"):
        grid.plot(x="lr", y="lr")


def test_a_grid_fits_a_screen_and_a_notebook(grid):
    lines = repr(grid).splitlines()
    assert lines[0] == "Grid of 2 × 3 × 2 points, 20 steps, 4 diverged"
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    well_formed(grid._repr_html_())
    assert "data:image/png;base64,iVBOR" in grid._repr_html_()


def test_rows_in_a_notebook_are_the_first_of_them():
    rows = Rows([{"quantity": "<loss>", "value": k / 3} for k in range(100)])
    page = rows._repr_html_()
    well_formed(page)
    assert "&lt;loss&gt;" in page
    assert "88 rows more" in page
    assert page.count("<tr>") == 13


def test_rows_become_frames():
    rows = Rows([{"quantity": "loss", "value": 1.5}, {"quantity": "n", "depth": 3}])
    for frame in (pytest.importorskip("pandas"), pytest.importorskip("polars")):
        name = frame.__name__.partition(".")[0]
        table = getattr(rows, f"to_{name}")()
        assert isinstance(table, frame.DataFrame)
        assert list(table.columns) == ["quantity", "value", "depth"]
        assert list(table["quantity"]) == ["loss", "n"]
        assert table["value"][0] == 1.5


def well_formed(page):
    """Refuse HTML whose tags do not close in order."""
    parser = Balanced()
    parser.feed(page)
    assert not parser.open
    assert parser.seen


class Balanced(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], 0

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize(("entries", "dots"), [(60, False), (61, True)])
def test_many_entries_are_dots(readings, entries, dots):
    many = dataclasses.replace(
        readings["Diagonal"],
        diagonal=np.arange(float(entries)),
        diagonal_error=np.full(entries, 0.1),
    )
    lines = many.plot().axes[0].lines
    assert ("." in {line.get_marker() for line in lines}) == dots
