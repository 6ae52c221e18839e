"""Products are counted for whoever looks, in no other case."""

import io
import sys

import pytest
import torch
from torch import nn

from theodolite import instruments
from theodolite.core import ConfigError
from theodolite.instruments import ProgressUpdate, counted, progress, show_progress
from theodolite.paths import path_ensemble
from theodolite.training import Descent, Every, Probe, train

MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
X, Y = torch.randn(12, 3).double(), torch.arange(12) % 2
BOTH = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}


def heard(measure):
    """Return what is said, from the first product on."""
    said = []
    with progress(said.append, after=0):
        measure()
    return said


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    module = sys.modules[progress.__wrapped__.__module__]
    monkeypatch.setattr(module, "_PAUSE", 0.0)


@pytest.mark.parametrize(
    ("name", "settings", "total", "bounded"),
    [
        ("spectral_density", {"n_probes": 2, "steps": 6}, 12, True),
        ("extreme_eigenvalues", {"max_matvecs": 20}, 20, True),
        ("trace", {"max_matvecs": 8}, 8, False),
        ("diagonal", {"max_matvecs": 8}, 8, False),
        ("index", {"n_probes": 2, "steps": 5}, 10, True),
    ],
)
def test_an_instrument_counts_its_products(name, settings, total, bounded):
    measure = getattr(instruments, name)
    readings = []

    def run():
        settings["method"] = "products"
        readings.append(measure(MODEL, (X, Y), **BOTH, **settings))

    said = heard(run)
    assert {told.what for told in said} == {name}
    assert (said[-1].total, said[-1].bounded) == (total, bounded)
    counts = [told.done for told in said]
    assert counts[0] == 1
    assert counts == sorted(counts)
    # What the graph's rounding takes may come on top.
    assert counts[-1] >= readings[0].cost.passes - 2
    assert [told.finished for told in said].index(True) == len(said) - 1


@pytest.mark.parametrize(
    "measure",
    [
        lambda: instruments.hessian(MODEL, (X, Y), chunk=8, **BOTH),
        lambda: instruments.spectrum(MODEL, (X, Y), chunk=8, **BOTH),
        lambda: instruments.tangent_kernel(MODEL, X, norm_mode="eval"),
        lambda: instruments.singular_values(MODEL, X, block="0", norm_mode="eval"),
        lambda: instruments.collapse(MODEL, [(X, Y)] * 2, norm_mode="eval"),
        lambda: instruments.by_block(instruments.trace, MODEL, (X, Y), **BOTH),
        lambda: train(MODEL, (X, Y), optimizer=Descent(lr=0.1), steps=3,
                      loss=BOTH["loss"]),
        lambda: path_ensemble(Residual(), X, norm_mode="eval"),
    ],
    ids="hessian spectrum kernel singular collapse blocks train paths".split(),
)  # fmt: skip
def test_everything_is_told(measure):
    said = heard(measure)
    assert said[-1].finished
    assert said[-1].done > 0
    assert len({told.what for told in said}) == 1


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3).double()

    def forward(self, x):
        return x + torch.relu(self.layer(x))


def test_products_of_a_probe_are_no_steps():
    def top(at):
        return instruments.trace(at.model, at.data, **BOTH, max_matvecs=6)

    said = heard(
        lambda: train(
            MODEL, (X, Y), optimizer=Descent(lr=0.1), steps=4, loss=BOTH["loss"],
            probes=[Probe("trace", top, Every(2))],
        )
    )  # fmt: skip
    assert said[-1].done == said[-1].total == 4


def test_silence_where_nobody_looks(capfd, monkeypatch):
    for told in (False, None):
        with progress(False) if told is False else progress(print, after=60):
            instruments.trace(MODEL, (X, Y), **BOTH)
    with show_progress("nothing"):
        counted()
    assert capfd.readouterr() == ("", "")


def test_a_terminal_has_one_line_that_is_wiped(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress(after=0):
        instruments.trace(MODEL, (X, Y), **BOTH, max_matvecs=8, method="products")
    text = screen.getvalue()
    assert "\n" not in text
    assert "trace: 8 of 8 products, 0 s" in text
    assert text.endswith("\r")
    assert not text.rsplit("\r", 2)[1].strip()


def test_a_terminal_is_told_after_five_seconds(monkeypatch):
    module = sys.modules[progress.__wrapped__.__module__]
    screen = io.StringIO()
    screen.isatty = lambda: True
    now = iter([0.0, 4.9, 5.1, 6.0])
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(now))
    with show_progress("long"):
        counted()
        assert not screen.getvalue()
        counted()
        assert screen.getvalue() == "\rlong: 2 products, 5 s"
    assert screen.getvalue().endswith("\r")


def test_words_and_misuse():
    update = ProgressUpdate(
        what="index", done=1200, total=3000, unit="products", seconds=61, bounded=True
    )
    assert str(update) == "index: 1,200 of at most 3,000 products, 61 s"
    with pytest.raises(ConfigError, match=r"tell is .loud.: pass True or False"):
        progress("loud").__enter__()
