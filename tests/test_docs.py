"""What the documents say is true: examples run, names exist, links resolve."""

import io
import re
import runpy
import tempfile
from contextlib import chdir, redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import LONGEST

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


drawn = {}


@cache
def printed(path):
    """Return what an example prints; each runs once."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as place, chdir(place), redirect_stdout(said):
        runpy.run_path(str(path), run_name="__main__")
        drawn[path.stem] = [each.name for each in Path(place).glob("*.png")]
    return said.getvalue()


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("examples/*.py")), ids=lambda p: p.name
)
def test_examples_run(path):
    assert printed(path).strip()


TASKS = (
    "block_spectra",
    "hessian_density",
    "sharpness_along_training",
    "tangent_kernel",
    "trace_by_layer",
)


@pytest.mark.parametrize("name", TASKS)
def test_everyday_tasks_are_drawn_and_can_be_opened_as_notebooks(name):
    path = ROOT / "examples" / f"{name}.py"
    printed(path)
    assert drawn[name] == [f"{name}.png"]
    assert len(re.findall(r"^# %% \w", path.read_text(), re.MULTILINE)) >= 2


def code_of(page):
    """Return the blocks of a page that are not doctests, which pytest runs itself."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    return [block for block in blocks if not block.startswith(">>>")]


# Where code that is no doctest is run, in order, as it is written.
RUN_BY = {
    "index.md": "test_readme.py",
    "README.md": "test_readme.py",
    "everyday.md": "test_everyday.py",
    "operators.md": "instruments/test_peer_cases.py",
    "scale_out.md": "runs/ray_checks.py",
    "tutorial.md": "test_docs.py",
    "your_study.md": "studies/test_plugins.py",
}


def test_all_code_of_all_pages_is_run_somewhere():
    assert {page.name for page in PAGES if code_of(page)} == RUN_BY.keys()
    for name, test in RUN_BY.items():
        assert name in (ROOT / "tests" / test).read_text()


def test_the_tutorial_runs_and_the_patient_recovers(tmp_path, monkeypatch, capsys):
    page = ROOT / "docs" / "tutorial.md"
    monkeypatch.chdir(tmp_path)
    space = {}
    for block in code_of(page):
        exec(compile(block, page.name, "exec"), space)
    for name in re.findall(r"\(pictures/(\w+\.png)\)", page.read_text()):
        assert (tmp_path / name).stat().st_size > 1000
    # What the text says of its numbers.
    rules = [finding.rule for finding in space["first"].findings]
    assert rules == ["gradient-vanishes", "dead-units"]
    gone = {finding.rule for finding in space["comparison"].gone}
    assert gone == {"gradient-vanishes", "dead-units"}
    assert space["before"][-1] > 2.29
    assert space["after"][-1] < 0.5
    prints_what_it_shows(page, capsys.readouterr().out)


def prints_what_it_shows(page, said):
    """Compare the output that a page shows, except dots, with what was printed."""
    told = re.sub(r"\(.*?\)", "", said)
    for shown in re.findall(r"```text\n(.*?)```", page.read_text(), re.DOTALL):
        for line in re.sub(r"\(.*?\)", "", shown).splitlines():
            assert "…" in line or line in told


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
    cli = (ROOT / "src/theodolite/cli/commands.py").read_text()
    for command in re.findall(r"^theodolite ([a-z]+)", text, flags=re.MULTILINE):
        assert f'"{command}"' in cli or f"def {command}(" in cli, command


def test_files_that_start_first_exist():
    for name in LONGEST:
        assert (ROOT / "tests" / name).exists(), name
