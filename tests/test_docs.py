"""What the documents say is true: examples run, names exist, links resolve."""

import io
import re
import runpy
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import LONGEST

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


@cache
def printed(path):
    """Return what an example prints; each runs once."""
    said = io.StringIO()
    with redirect_stdout(said):
        runpy.run_path(str(path), run_name="__main__")
    return said.getvalue()


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("examples/*.py")), ids=lambda p: p.name
)
def test_examples_run(path):
    assert printed(path).strip()


def test_example_of_two_roads_agrees():
    lines = printed(ROOT / "examples/two_roads.py").splitlines()
    for line in lines:
        predicted, measured = (float(m) for m in re.findall(r"\d\.\d{10}", line))
        assert predicted == pytest.approx(measured, abs=2e-10)
        assert predicted == pytest.approx(1.4701596921, abs=2e-10)
    assert lines


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_resolve(page):
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_names_real_make_targets_and_commands():
    makefile = (ROOT / "Makefile").read_text()
    text = "".join(page.read_text() for page in PAGES)
    for target in re.findall(r"^make ([a-z-]+)", text, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    cli = (ROOT / "src/theodolite/cli.py").read_text()
    for command in re.findall(r"^theodolite ([a-z]+)", text, flags=re.MULTILINE):
        assert f'"{command}"' in cli or f"def {command}(" in cli, command


def test_files_that_start_first_exist():
    for name in LONGEST:
        assert (ROOT / "tests" / name).exists(), name
