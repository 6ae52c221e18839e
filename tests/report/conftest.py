"""A small world of finished runs: three studies of two papers, with figures."""

import json

import pytest

from tests.pages.conftest import browser, drawn, new_page  # noqa: F401 (fixtures)
from tests.report.papers import OF_TWO_PAPERS, STUDIES, saved
from theodolite.runs import RunFolder, RunSpec


def write_run(root, study, drawn, **config):  # noqa: F811
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
def root(tmp_path_factory, drawn):  # noqa: F811
    """A folder with one finished run of every study; not to be changed."""
    place = tmp_path_factory.mktemp("out")
    for study in STUDIES:
        write_run(place, study, drawn)
    return place


@pytest.fixture(scope="session")
def runs(drawn):  # noqa: F811
    """The same, read straight from their text."""
    return [saved(study, drawn) for study in STUDIES]


@pytest.fixture(scope="session")
def runs_of_two_papers(drawn):  # noqa: F811
    """The same studies, one of them of another paper."""
    return [saved(study, drawn) for study in OF_TWO_PAPERS]


@pytest.fixture(scope="module")
def tab(browser):  # noqa: F811
    """A page that tests use in turns: to open one takes as long as to read it."""
    page = new_page(browser, reduced_motion="reduce")
    yield page
    page.context.close()


@pytest.fixture
def visit(browser, tab, address):  # noqa: F811
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
            page = new_page(browser, reduced_motion="reduce", **options)
        opened.append(page)
        page.set_viewport_size({"width": width, "height": height})
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
