"""Pages written by hand: those of ``docs/``, and those that lie beside the code."""

import io
import re
import shutil
from contextlib import chdir, redirect_stdout
from pathlib import Path

from handbook.settings import HERE, Nav

ROOT = HERE.parent
# Of files outside of docs/, which pages of the site they are.
BESIDE = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
FIRST = ("tutorial", "everyday")
PAPERS = ("studies", "verdicts", "errata", "theorem_5_1")
TAKE_PART = ("extending", "your_study")


def write(pages: Path, nav: Nav) -> None:
    """Copy all pages, their links led to where they lie on the site."""
    docs = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
    for name in docs:
        text = (ROOT / "docs" / f"{name}.md").read_text()
        (pages / f"{name}.md").write_text(site_links(text))
    for source, target in BESIDE.items():
        (pages / target).write_text(site_links((ROOT / source).read_text()))
    for folder in (path for path in (ROOT / "docs").iterdir() if path.is_dir()):
        shutil.copytree(folder, pages / folder.name)
    run_tutorial(pages / "pictures")
    for name in ("site.css", "iframe-worker.js"):
        shutil.copy(HERE / name, pages)
    special = ("index", *FIRST, *PAPERS, *TAKE_PART)
    order = {
        "Start": [name for name in FIRST if name in docs],
        "Papers": [name for name in PAPERS if name in docs],
        "Guide": [name for name in docs if name not in special],
        "Take part": [name for name in TAKE_PART if name in docs],
    }
    for section, names in order.items():
        for name in names:
            nav.add(section, title_of(pages / f"{name}.md"), f"{name}.md")
    for target in BESIDE.values():
        nav.add("Take part", title_of(pages / target), target)


def run_tutorial(pictures: Path) -> None:
    """Make the pictures of the tutorial anew, by the code that stands in it."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    space: dict[str, object] = {}
    with chdir(pictures), redirect_stdout(io.StringIO()):
        for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
            exec(compile(block, "tutorial.md", "exec"), space)


def site_links(text: str) -> str:
    """Return a page whose links are those of the site."""
    text = re.sub(r"\]\((?:\.\./)?docs/", "](", text)
    for source, target in BESIDE.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(source)}", f"]({target}", text)
    return text


def title_of(page: Path) -> str:
    """Return the heading that a page begins with."""
    first = page.read_text().lstrip().splitlines()[0]
    return first.removeprefix("# ").strip()
