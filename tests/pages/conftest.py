"""Figures to put into pages, and a browser to open pages with."""

import os
import shutil

import numpy as np
import pytest

from theodolite.figures import (
    band,
    curve,
    house_style,
    legend,
    log_axis,
    new_figure,
    save,
    series_style,
)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Milliseconds that a busy machine may take for what takes one second alone.
PATIENCE = 250_000
NAMES = ["1-shortcut", "2-shortcut", "3-shortcut", "plain"]


@house_style()
def condition_figure():
    depth = np.array([2, 4, 8, 16, 32])
    figure, (ax,) = new_figure(6.6, 3.6)
    for power, name in enumerate(NAMES[:3]):
        style = series_style(name, NAMES)
        y = 1.4 + power * depth ** (0.6 * power)
        band(ax, depth, y, 0.1 * y, style=style, label=name, bound=y > 40)
        curve(ax, depth, y * 1.02, style=style)
    log_axis(ax, "x", base=2, ticks=depth)
    log_axis(ax, "y")
    ax.set(xlabel="depth $L$", ylabel="condition number", title="At the initial point")
    legend(ax)
    return save(figure, "condition")


@house_style()
def spectrum_figure():
    figure, (left, right) = new_figure(7.2, 3.2, panels=(1, 2), share_y=True)
    x = np.linspace(-2, 2, 41)
    for ax, name in ((left, "2-shortcut"), (right, "plain")):
        style = series_style(name, NAMES)
        band(ax, x, np.exp(-(x**2)), 0.05 + 0 * x, style=style, label=name)
        ax.set(xlabel=r"eigenvalue $\lambda$", title=name)
    left.set_ylabel("density")
    return save(figure, "spectrum")


@pytest.fixture(scope="session")
def drawn():
    return {"condition": condition_figure(), "spectrum": spectrum_figure()}


def new_page(browser, **options):
    """Return a page in a context of its own, which waits as long as anybody needs."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    return context.new_page()


@pytest.fixture(scope="module")
def browser():
    required = os.environ.get("THEODOLITE_REQUIRE_BROWSER")
    missing = pytest.fail if required else pytest.skip
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        missing(f"no browser: none of {', '.join(BROWSERS)} is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no browser: playwright is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=ARGUMENTS, timeout=PATIENCE
        )
        yield browser
        browser.close()
