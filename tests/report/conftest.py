"""A small world of finished runs: three studies of two papers, with figures."""

import json
import os
import shutil

import numpy as np
import pytest

from tests.report.papers import STUDIES
from theodolite.core import parse_summary
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
from theodolite.report import JudgedRun
from theodolite.runs import RunFolder, RunSpec

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


def write_run(root, study, drawn, **config):
    """Write a finished run as the studies do; return its folder."""
    spec = RunSpec(
        paper=study["paper"]["name"],
        study=study["study"]["name"],
        scale=study["scale"],
        config={**study["config"], **config},
        revision=1,
        device="cpu",
        seeds=(0, 1, 2, 3),
    )
    folder = RunFolder.create(root, spec)
    for figure in study["figures"]:
        for name, content in drawn[figure["name"]].items():
            folder.write(f"figures/{name}", content)
    summary = {key: value for key, value in study.items() if key != "config"}
    folder.write("summary.json", json.dumps(summary))
    return folder


@pytest.fixture(scope="session")
def root(tmp_path_factory, drawn):
    """A folder with one finished run of every study; not to be changed."""
    place = tmp_path_factory.mktemp("out")
    for study in STUDIES:
        write_run(place, study, drawn)
    return place


@pytest.fixture(scope="session")
def runs(drawn):
    """The same, read straight from their text."""
    found = []
    for study in STUDIES:
        svg = {
            f"figures/{one['name']}.svg": drawn[one["name"]][
                f"{one['name']}.svg"
            ].decode()
            for one in study["figures"]
        }
        info = {
            "config": study["config"],
            "version": "0.1.0",
            "commit": "0123abc",
            "device": "cpu",
            "seeds": [0, 1, 2, 3],
        }
        text = json.dumps(study)
        summary = parse_summary(text, source="summary.json")
        found.append(JudgedRun(summary=summary, info=info, svg=svg))
    return found


@pytest.fixture(scope="module")
def browser():
    required = os.environ.get("THEODOLITE_REQUIRE_BROWSER")
    missing = pytest.fail if required else pytest.skip
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        missing(f"no browser: none of {', '.join(BROWSERS)} is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no browser: playwright is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab(browser):
    """A page that tests use in turns: to open one takes as long as to read it."""
    with browser.new_context(reduced_motion="reduce") as context:
        yield context.new_page()


@pytest.fixture
def visit(browser, tab, address):
    """Open the page; fail at the end if it complained or asked for anything.

    Who asks for something special, or for a second page, gets one of its own.
    """
    opened, complaints, requests = [], [], []
    listeners = {
        "console": lambda message: complaints.append(message.text),
        "pageerror": lambda error: complaints.append(str(error)),
        "request": lambda request: requests.append(request.url),
    }

    def visit(width=1280, height=800, fragment="", **options):
        page = tab
        if options or opened:
            page = browser.new_context(reduced_motion="reduce", **options).new_page()
        opened.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.set_default_timeout(60_000)
        for event, listener in listeners.items():
            page.on(event, listener)
        page.goto(address + fragment)
        return page

    yield visit
    for page in opened:
        if page is tab:
            _leave(page, listeners)
        else:
            page.context.close()
    assert complaints == []
    assert {url.partition("#")[0] for url in requests} <= {address}


def _leave(page, listeners):
    """Leave a page as if nobody had been there."""
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    page.evaluate("localStorage.clear()")
    page.emulate_media(media="null", color_scheme="null")
    page.mouse.move(-1, -1)
    page.goto("about:blank")
