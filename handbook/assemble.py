"""Pages written by hand: those of ``docs/``, and some of the repository's root."""

import io
import re
import shutil
from contextlib import chdir, redirect_stdout
from pathlib import Path

from handbook.settings import HERE, Nav

ROOT = HERE.parent
# Files outside of docs/, and their pages on the site.
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
    """Write all pages, the pictures and the navigation into a folder."""
    for name, text in hand_written().items():
        (pages / name).write_text(text)
    docs = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
    for folder in (path for path in (ROOT / "docs").iterdir() if path.is_dir()):
        shutil.copytree(folder, pages / folder.name)
    run_tutorial(pages / "pictures")
    shutil.copytree(ROOT / "examples" / "notebooks", pages / "notebooks")
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


def hand_written() -> dict[str, str]:
    """Return the text of each page written by hand, by its file name on the site."""
    files = {path.name: path for path in (ROOT / "docs").glob("*.md")}
    files |= {target: ROOT / source for source, target in BESIDE.items()}
    return {name: site_links(path.read_text()) for name, path in files.items()}


def run_tutorial(pictures: Path) -> None:
    """Run the code of the tutorial, which draws its pictures."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    space: dict[str, object] = {}
    with chdir(pictures), redirect_stdout(io.StringIO()):
        for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
            exec(compile(block, "tutorial.md", "exec"), space)


def site_links(text: str) -> str:
    """Return a page whose links lead to pages of the site."""
    text = re.sub(r"\]\((?:\.\./)?docs/", "](", text)
    text = re.sub(r"\]\((?:\.\./)?examples/notebooks/", "](notebooks/", text)
    for source, target in BESIDE.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(source)}", f"]({target}", text)
    return text


def title_of(page: Path) -> str:
    """Return the heading that a page begins with."""
    first = page.read_text().lstrip().splitlines()[0]
    return first.removeprefix("# ").strip()
