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
# Files that a page is made of, and that page.
MADE_FROM = {
    "handbook/gallery_pages.py": "gallery/when_numbers_lie.md",
    "handbook/gallery": "gallery/index.md",
}
SECTIONS = {
    "Fix a network": "tutorial survey subjects compare_and_watch surgery findings",
    "Measure one": "everyday instruments operators large_models",
    "Check a paper": "studies how_we_know verdicts errata theorem_5_1 theory report",
    "Extend it": "extending your_study",
}
# A link to a section of another page that is a paragraph of its own.
TABLE_OF = re.compile(r"^\[[^\]]+\]\((\w+\.md)#([\w-]+)\)$", re.M)


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
    placed = " ".join(("index", *SECTIONS.values())).split()
    others = [name for name in docs if name not in placed]
    for section, names in SECTIONS.items():
        for name in (*names.split(), *(others if section == "Measure one" else ())):
            nav.add(section, title_of(pages / f"{name}.md"), f"{name}.md")
    for target in BESIDE.values():
        nav.add("Extend it", title_of(pages / target), target)


def hand_written() -> dict[str, str]:
    """Return the text of each page written by hand, by its file name on the site."""
    files = {path.name: path for path in (ROOT / "docs").glob("*.md")}
    files |= {target: ROOT / source for source, target in BESIDE.items()}
    texts = {name: site_links(path.read_text()) for name, path in files.items()}
    texts["how_we_know.md"] = TABLE_OF.sub(
        lambda link: f"{link[0]}\n\n{first_table(texts[link[1]], link[2])}",
        texts["how_we_know.md"],
    )
    return texts


def first_table(text: str, place: str) -> str:
    """Return the first table of the section of a page with that address."""
    for section in re.split(r"^#+ ", text, flags=re.M):
        heading = section.partition("\n")[0]
        table = re.search(r"(?:^\|.*\n)+", section, re.M)
        if re.sub(r"\W+", "-", heading.lower()) == place and table:
            return table[0]
    raise ValueError(f"no page has a table below #{place}; name the section's address")


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
    for source, target in (BESIDE | MADE_FROM).items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(source)}", f"]({target}", text)
    return text


def title_of(page: Path) -> str:
    """Return the heading that a page begins with."""
    first = page.read_text().lstrip().splitlines()[0]
    return first.removeprefix("# ").strip()
