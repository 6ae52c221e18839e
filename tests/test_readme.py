"""README.md as a new user takes it: its code runs in order, its links lead on."""

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from docs import make_pictures

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def for_index(text):
    spec = importlib.util.spec_from_file_location("hook", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook.for_index(text)


@pytest.fixture(scope="module")
def shown():
    """Names, survey and advice of the first screen, run as README.md prints them."""
    return make_pictures.run_readme()


def masked(text):
    """Return a text without its numbers, which differ in the last digits."""
    return re.sub(r"\d[\d.,]*(e-?\d+)?", "#", " ".join(text.split()))


def test_the_first_screen_is_what_is_printed(shown):
    _, found, advice = shown
    assert masked(found) in masked(TEXT)
    assert advice in TEXT


def test_the_advice_of_the_first_screen_makes_the_network_train(shown):
    space, _, _ = shown
    told = re.search(r"with and without the advice: ([\d.]+) and ([\d.]+)", TEXT)
    treated = make_pictures.with_advice(space)
    ends = [
        make_pictures.losses(treated["model"], treated["optimizer"], space)[-1],
        make_pictures.losses(space["model"], space["optimizer"], space)[-1],
    ]
    assert ends == pytest.approx([float(told[1]), float(told[2])], abs=0.2)
    assert ends[0] < 0.3 < 2.2 < ends[1]


def test_the_home_page_shows_the_same_lines_and_pictures():
    """Those of README.md, which are run and compared above."""
    home = (ROOT / "docs" / "index.md").read_text()
    shown = re.findall(r"^```(?:python|text)\n.*?^```", TEXT, re.M | re.S)[:4]
    assert re.findall(r"^```\w+\n.*?^```", home, re.M | re.S) == shown
    pictures = re.findall(r"^!\[.*\]\(docs/(?=pictures/readme).*\)", TEXT, re.M)
    assert len(pictures) == 2
    wanted = [line.replace("(docs/", "(") for line in pictures]
    assert re.findall(r"^!\[.*", home, re.M) == wanted


def test_the_other_snippets_run_as_written(shown, capsys):
    space, _, _ = shown
    for block in BLOCKS[2:]:
        exec(compile(block, "README.md", "exec"), space)
    assert "ExtremeEigenvalues, converged" in capsys.readouterr().out
    assert len(space["top"].eigenvalues) == 5


def test_numbers_beside_other_tools_are_those_of_the_benchmarks():
    table = TEXT[TEXT.index("## Beside other tools") : TEXT.index("## Four papers")]
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    numbers = set(re.findall(r"-?\d+\.\d{5}|\d+\.\d×|\b\d\.\d{3}\b", table))
    assert len(numbers) >= 9
    assert all(f" {number} " in page for number in numbers)
    for tool, version in re.findall(r"^\| ([\w-]+) (\d[\w.]*) \|", table, re.MULTILINE):
        assert re.search(rf"{tool}(-for-pytorch)? {re.escape(version)}\b", page, re.I)
    right = [
        re.search(rf"\| {tool}[^|]*\|[^|]*\| yes \|", line) is not None
        for tool in ("theodolite.summary", "torchinfo")
        for line in page.splitlines()
        if line.startswith("| layers, ") and f"| {tool}" in line
    ]
    assert right == [True] * 5 + [False] * 5  # torchinfo counts biases as well
    assert "| 5 of 5 |" in table


def test_the_first_pages_are_short():
    assert len(TEXT.splitlines()) <= 150
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 50


def test_links_of_the_index_page_lead_somewhere():
    page = for_index(TEXT)
    targets = re.findall(r"\]\(([^)]*)\)", page)
    assert all(target.startswith("https://") for target in targets)
    assert "docs/pictures" not in page
    assert "How often findings are wrong was measured on" in " ".join(page.split())
    assert PROJECT["dynamic"] == ["version", "readme"]
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())


def test_pictures_at_the_top_are_small_and_there():
    pictures = re.findall(r"^!\[([^\]]+)\]\(([^)]+)\)", TEXT, re.MULTILINE)
    assert len(pictures) == 3
    for told, path in pictures:
        assert told
        assert (ROOT / path).read_bytes().startswith(b"\x89PNG")
        assert (ROOT / path).stat().st_size < 150_000


def test_the_extras_told_are_those_there_are():
    table = TEXT[TEXT.index("| extra | for |") : TEXT.index("## Measure one number")]
    told = set(re.findall(r"`(?:theodolite)?\[(\w+)\]`", table))
    assert told == set(PROJECT["optional-dependencies"]) - {"dev"}
    assert "pip install theodolite" in TEXT


@pytest.mark.parametrize("name", ["README.md", "docs/benchmarks.md"])
def test_pages_speak_to_users(name):
    assert not re.search(r"\btargets? (at most|\d)", (ROOT / name).read_text())


@pytest.mark.slow
def test_the_wheel_runs_outside_the_source_tree(tmp_path):
    """Build it, install it apart and run what its own index page shows."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheels, apart, desk = (tmp_path / name for name in ("wheels", "apart", "desk"))
    desk.mkdir()
    subprocess.run([*pip, "wheel", "--no-deps", "-w", wheels, ROOT], check=True)
    (wheel,) = wheels.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "-t", apart, wheel], check=True)
    code = f"""
        import re, theodolite
        from importlib.metadata import metadata
        assert theodolite.__file__.startswith({str(apart)!r})
        page = metadata("theodolite").get_payload()
        assert "](docs" not in page
        space = {{}}
        for block in re.findall(r"^```python\\n(.*?)^```", page, re.M | re.S):
            exec(block, space)
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)],
        cwd=desk,
        env={**os.environ, "PYTHONPATH": str(apart)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ExtremeEigenvalues, converged" in done.stdout
