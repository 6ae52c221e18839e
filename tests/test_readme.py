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

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def for_index(text):
    spec = importlib.util.spec_from_file_location("hook", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook.for_index(text)


def test_the_snippets_run_as_written_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) >= 6
    space = {}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README.md, block {number}", "exec"), space)
    for name in ("density.png", "density.npz", "grid.png"):
        assert (tmp_path / name).stat().st_size > 1000
    said = capsys.readouterr().out
    assert "ExtremeEigenvalues, converged" in said
    # What the snippets promise of their numbers.
    assert len(space["top"].eigenvalues) == 5
    assert space["watcher"].rows().levels("step") == [0, 10, 20, 30]
    assert space["grid"].shape == (2, 3, 3)


def test_links_of_the_index_page_lead_somewhere():
    page = for_index(TEXT)
    targets = re.findall(r"\]\(([^)]*)\)", page)
    assert all(target.startswith("https://") for target in targets)
    assert "docs/pictures" not in page
    assert "which is measured" in " ".join(page.split())
    assert PROJECT["dynamic"] == ["version", "readme"]
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())


def test_pictures_at_the_top_are_small_and_there():
    pictures = re.findall(r"^!\[([^\]]+)\]\(([^)]+)\)", TEXT, re.MULTILINE)
    assert len(pictures) == 2
    for told, path in pictures:
        assert told
        assert (ROOT / path).read_bytes().startswith(b"\x89PNG")
        assert (ROOT / path).stat().st_size < 150_000


def test_the_extras_told_are_those_there_are():
    table = TEXT[TEXT.index("| extra | for |") : TEXT.index("## First readings")]
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
        print(space["grid"])
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
    assert "Grid of 2 × 3 × 3 points" in done.stdout
